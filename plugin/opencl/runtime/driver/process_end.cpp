// Counts the threads that compile, for who waits for the last of them.
#include "process_end.h"

#include <condition_variable>
#include <mutex>

#include "ocltensor/error.h"

namespace ocltensor::opencl {
namespace {

struct Threads {
  std::mutex mutex;
  std::condition_variable fewer;
  int compiling = 0;
};
Threads& threads() {
  static Threads& all = *new Threads;  // leaked: threads may outlive exit handlers
  return all;
}

}  // namespace

std::atomic<bool> detail::ending{false};

Compiling::Compiling(const char* what) {
  const std::lock_guard lock(threads().mutex);
  if (is_process_ending())
    fail(TB_E_STATE,
         "{} cannot be compiled: the process is ending, and the compiler of its OpenCL driver may "
         "be gone; use it once before main() ends",
         what);
  ++threads().compiling;
}

Compiling::~Compiling() {
  const std::lock_guard lock(threads().mutex);
  --threads().compiling;
  threads().fewer.notify_all();
}

bool end_compiling() {
  std::unique_lock lock(threads().mutex);
  if (detail::ending.exchange(true)) return false;
  threads().fewer.wait(lock, [] { return threads().compiling == 0; });
  return true;
}

}  // namespace ocltensor::opencl
