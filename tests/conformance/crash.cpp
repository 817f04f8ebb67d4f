// The record of what is tried, and the signal handler.
#include "crash.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "ocltensor/error.h"

namespace ocltensor::conformance {
namespace {

// Plain buffers, so that the handler needs no allocation and no lock.
struct Current {
  char group[128];
  char what[2048];
  CurrentTask task;
};
Current own;
Current* current = &own;

void copy_text(char* to, size_t capacity, const std::string& text) {
  const size_t n = std::min(text.size(), capacity - 1);
  memcpy(to, text.data(), n);
  to[n] = 0;
}

void put(const char* text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, strlen(text));
}

const char* name_of(int number) {
  switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGABRT: return "SIGABRT";
    case SIGFPE: return "SIGFPE";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGKILL: return "SIGKILL";
    default: return nullptr;
  }
}

void handler(int number) {
  const char* name = name_of(number);
  put("\nCRASH (");
  put(name != nullptr ? name : "signal");
  put(") during: ");
  put(current->group);
  put(": ");
  put(current->what);
  put("\n");
  _exit(128 + number);
}

}  // namespace

void set_current(const std::string& group, const std::string& what) {
  copy_text(current->group, sizeof current->group, group);
  copy_text(current->what, sizeof current->what, what);
}

void set_current_task(const CurrentTask& task) { current->task = task; }
CurrentTask current_task() { return current->task; }
std::string current_what() { return current->what; }

void share_current() {
  if (current != &own) return;
  void* memory =
      mmap(nullptr, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail(TB_E_OUT_OF_MEMORY, "mmap of one page failed: no memory is left");
  current = new (memory) Current(own);
}

void install_crash_handler() {
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) {
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(number, &action, nullptr);
  }
}

std::string signal_name(int number) {
  const char* name = name_of(number);
  return name != nullptr ? name : fmt::format("signal {}", number);
}

}  // namespace ocltensor::conformance
