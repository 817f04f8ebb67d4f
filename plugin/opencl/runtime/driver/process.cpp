// Detects forks by a pthread_atfork handler.
#include "process.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "ocltensor/error.h"

namespace ocltensor::opencl {

std::atomic<bool> detail::forked{false};

void note_driver_loaded() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { detail::forked = true; }); });
}

bool is_forked() { return detail::forked.load(std::memory_order_relaxed); }

void detail::refuse_fork() {
  fail(TB_E_STATE,
       "this process was forked after its parent had used OpenCL, and drivers do not survive that; "
       "use the 'spawn' or 'forkserver' start method, or fork before the first use of the device");
}

}  // namespace ocltensor::opencl
