// The signal handler only wakes a thread, because the work to be done takes locks and writes files.
#include "interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "runtime/driver/worker.h"

namespace ocltensor::opencl {
namespace {

int wake[2] = {-1, -1};
pid_t owner = 0;
void (*last_action)() = nullptr;

// SA_RESETHAND has restored the default action: a second Ctrl-C ends the process at once.
void on_interrupt(int) {
  if (::getpid() != owner) {  // in a child of fork(), which does not have the thread
    (void)::raise(SIGINT);
    return;
  }
  const char byte = 0;
  (void)!::write(wake[1], &byte, 1);
}

void watch() {
  char byte;
  if (::read(wake[0], &byte, 1) != 1) return;
  last_action();
  (void)::kill(::getpid(), SIGINT);
}

void install() {
  struct sigaction now {};
  if (::sigaction(SIGINT, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  if (::pipe2(wake, O_CLOEXEC) != 0) return;
  owner = ::getpid();
  start_worker("ocl-interrupt", watch).detach();
  struct sigaction ours {};
  ours.sa_handler = on_interrupt;
  ours.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&ours.sa_mask);
  (void)::sigaction(SIGINT, &ours, nullptr);
}

}  // namespace

void finish_on_interrupt(void (*finish)()) {
  static std::once_flag once;
  std::call_once(once, [finish] {
    last_action = finish;
    install();
  });
}

}  // namespace ocltensor::opencl
