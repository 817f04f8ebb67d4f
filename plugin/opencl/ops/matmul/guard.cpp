// Makes the values of guards.
#include "guard.h"

#include <atomic>

namespace ocltensor::opencl::matmul {

// Successive values lie far from each other and from small numbers, which memory often holds.
uint32_t next_guard_value() {
  static std::atomic<uint32_t> next{0x85ebca6bu};
  return next.fetch_add(0x9e3779b9u, std::memory_order_relaxed);
}

}  // namespace ocltensor::opencl::matmul
