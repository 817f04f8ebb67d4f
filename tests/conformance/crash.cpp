// The signal handler.
#include "crash.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace ocltensor::conformance {
namespace {

// A plain buffer, so that the handler needs no allocation and no lock.
char current[512];

void put(const char* text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, strlen(text));
}

void handler(int number) {
  put("\nCRASH (");
  put(number == SIGSEGV   ? "SIGSEGV"
      : number == SIGABRT ? "SIGABRT"
      : number == SIGFPE  ? "SIGFPE"
                          : "signal");
  put(") during: ");
  put(current);
  put("\n");
  _exit(128 + number);
}

}  // namespace

void set_current(const std::string& what) {
  const size_t n = std::min(what.size(), sizeof current - 1);
  memcpy(current, what.data(), n);
  current[n] = 0;
}

void install_crash_handler() {
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) {
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(number, &action, nullptr);
  }
}

}  // namespace ocltensor::conformance
