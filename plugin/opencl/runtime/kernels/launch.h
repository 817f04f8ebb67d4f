// Launches: a kernel's arguments, in the order of its parameters, and the range to run.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ocltensor/error.h"
#include "runtime/driver/opencl.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/memory_range.h"
#include "runtime/queue/kernel.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {

// A number of work-items, in three dimensions. Signed, like all sizes of tensors.
using Grid = std::array<int64_t, 3>;

// Sets arguments in the order of the kernel's parameters, and enqueues. Operators do not use it
// directly: the structures written by generate_launches.py do (KernelOf, OpCall::launch).
class Launch {
 public:
  Launch(Stream& stream, Kernel& kernel) : stream_(stream), kernel_(kernel) {
    kernel_.enter(stream.epoch());
    // Arguments of a launch that was never made: their buffers may be gone.
    if (!kernel_.changes().empty()) [[unlikely]]
      kernel_.forget_arguments();
  }
  Launch(Launch&&) = default;
  ~Launch();

  // Binds two parameters: (__global T* base, ulong byte_offset). Bytes [low, high) around the
  // address must belong to the caller. Address 0 binds an empty buffer.
  Launch& memory(const MemoryRange& range) { return memory(range.address, range.low, range.high); }
  Launch& memory(tb_address address, int64_t low, int64_t high) {
    const Place place = address == 0 ? Place{nullptr, 0} : resolve(address, low, high);
    kernel_.set_arg(next_++, sizeof place.buffer, &place.buffer);
    kernel_.set_arg(next_++, sizeof place.offset, &place.offset);
    return *this;
  }
  // Binds a number, or a parameter structure (which some drivers take in memory only).
  template <typename T>
  Launch& value(const T& v) {
    if constexpr (std::is_class_v<T>) return bytes(&v, sizeof v);
    kernel_.set_arg(next_++, sizeof v, &v);
    return *this;
  }
  Launch& bytes(const void* data, size_t size);
  // Binds two parameters, those of kernels/include/faults.h.
  Launch& faults(FaultSite site) {
    const cl_mem record = stream_.faults().record();
    kernel_.set_arg(next_++, sizeof record, &record);
    kernel_.set_arg(next_++, sizeof site.number, &site.number);
    reports_ = site.number != 0;
    return *this;
  }
  // Binds a `__local` parameter.
  Launch& local(size_t bytes) {
    kernel_.set_arg(next_++, bytes, nullptr);
    return *this;
  }

  Kernel& kernel() { return kernel_; }

  // `global` counts work-items; zeros in `local` let the driver choose. A range with a zero in
  // `global` is not launched.
  void run(const Grid& global, const Grid& local) {
    if (global[0] == 0 || global[1] == 0 || global[2] == 0) return;
    const uint32_t rank = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    stream_.launch(kernel_, {rank, in_size_t(global), in_size_t(local)});
    if (reports_) stream_.faults().expect();
  }

 private:
  static std::array<size_t, 3> in_size_t(const Grid& grid) {
    return {static_cast<size_t>(grid[0]), static_cast<size_t>(grid[1]),
            static_cast<size_t>(grid[2])};
  }
  Stream& stream_;
  Kernel& kernel_;
  uint32_t next_ = 0;
  bool reports_ = false;
  std::vector<tb_address> structures_;  // parameter structures in memory; freed with the launch
};

}  // namespace ocltensor::opencl
