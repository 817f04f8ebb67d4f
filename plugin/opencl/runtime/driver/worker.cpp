// Starts threads with signals blocked.
#include "worker.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace ocltensor::opencl {

std::thread start_worker(const char* name, std::function<void()> run) {
  // A thread inherits the mask of the one that starts it.
  struct Mask {
    Mask() {
      sigset_t blocked;
      sigfillset(&blocked);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&blocked, fault);
      pthread_sigmask(SIG_SETMASK, &blocked, &before);
    }
    ~Mask() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } mask;
  std::thread thread(std::move(run));
  (void)pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace ocltensor::opencl
