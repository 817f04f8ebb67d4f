// Process-wide state: fork detection. An OpenCL driver does not survive fork(); the child gets an
// error, not a hang.
#pragma once

#include <atomic>

namespace ocltensor::opencl {

namespace detail {
extern std::atomic<bool> forked;
[[noreturn]] void refuse_fork();
}  // namespace detail

// To be called when a driver has been loaded: from then on a forked child is refused.
void note_driver_loaded();
// Throws Error(TB_E_STATE) in a child forked after that.
inline void check_process() {
  if (detail::forked.load(std::memory_order_relaxed)) [[unlikely]]
    detail::refuse_fork();
}
bool is_forked();  // whether this is such a child

}  // namespace ocltensor::opencl
