// Kernels and launches. A kernel object belongs to one thread, because clSetKernelArg is not safe
// on a shared one, and also to one stream if launches go through the stream's launch thread. It
// remembers its arguments, so that a repeated launch sets only those that changed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "ocltensor/error.h"
#include "runtime/driver/opencl.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/memory_range.h"
#include "runtime/program/defines.h"
#include "runtime/program/source.h"
#include "runtime/queue/command.h"
#include "runtime/queue/kernel_arguments.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {

class Program;

class Kernel {
 public:
  // `group_limit` as group_limit() of caps.h; without it launches are left as they are.
  Kernel(cl_kernel kernel, const char* name, uint32_t group_limit = UINT32_MAX);
  // A pending kernel, of a program that is still to be built, or `unproven`: its launches are
  // records of a launch thread, where make() is called before the first one is submitted.
  Kernel(Device& device, std::shared_ptr<Program> program, const char* name, bool unproven)
      : name_(name), later_(new Later{device, std::move(program), unproven}) {}
  cl_kernel get() const { return kernel_; }
  bool is_pending() const { return later_ != nullptr && !is_made_.load(std::memory_order_acquire); }
  // For those who submit: builds the program, or waits for who builds it, and for the verdict.
  void make();
  // Whether this stands for a kernel whose program has not been built (see Rehearsal): it is never
  // launched.
  bool is_unready() const { return is_unready_; }
  const char* name() const { return name_; }

  // The range in work-groups that the driver gives this kernel, which must have been made: those
  // that are too large are halved, so that they go on dividing the number of work-items.
  Range fitted(const Range& range) const {
    const size_t items = range.local[0] * range.local[1] * range.local[2];
    if (items <= group_limit_) [[likely]]
      return range;
    return halved(range);
  }

  // Kept until the next launch passes it to the driver. `value` null: `bytes` of local memory.
  void set_arg(uint32_t index, size_t bytes, const void* value) {
    if (is_unready()) [[unlikely]]
      return;
    const bool small =
        index < kRemembered && value != nullptr && bytes <= sizeof(Remembered::value);
    if (small) {
      Remembered& r = remembered_[index];
      if (r.bytes == bytes && std::memcmp(r.value, value, bytes) == 0) return;
      r.bytes = static_cast<uint32_t>(bytes);
      std::memcpy(r.value, value, bytes);
    }
    changes_.add(index, bytes, value);
  }
  ArgumentChanges& changes() { return changes_; }
  // Calls clSetKernelArg for each: CL_SUCCESS, or the driver's error, with a text in `call` for the
  // message.
  cl_int apply(const ArgumentChanges& changes, std::string& call) const;
  // Forgets which arguments the driver has, so that all are set again.
  void forget_arguments() {
    remembered_.fill({});
    changes_.clear();
  }
  // Forgets one of them: its value may stand for something else in the next launch.
  void forget(uint32_t index) {
    if (index < kRemembered) remembered_[index].bytes = 0;
  }
  // To be called before the arguments of a launch are set: arguments of dropped launches never
  // reached the driver.
  void enter(uint64_t epoch) {
    if (epoch == epoch_) [[likely]]
      return;
    epoch_ = epoch;
    forget_arguments();
  }
  bool is_of(uint64_t epoch) const { return epoch == epoch_; }

 private:
  Range halved(Range range) const;

  static constexpr uint32_t kRemembered = 24;
  struct Remembered {
    uint32_t bytes = 0;  // 0: never set
    unsigned char value[8];
  };
  struct Later {
    Device& device;
    const std::shared_ptr<Program> program;
    const bool unproven;
  };
  cl_kernel kernel_ = nullptr;  // of owner_
  std::shared_ptr<const cl::Kernel> owner_;
  const char* name_;
  const bool is_unready_ = false;
  uint32_t group_limit_ = UINT32_MAX;
  const std::unique_ptr<const Later> later_;
  std::atomic<bool> is_made_{false};
  std::array<Remembered, kRemembered> remembered_{};
  ArgumentChanges changes_;
  uint64_t epoch_ = 0;  // the stream's epoch at the last use
};

// This thread's kernel `function` of the program made from `source` and `defines`. A program that
// is missing is built; or noted as missing, if the stream rehearses; or asked of builders, if the
// stream has a launch thread, and the kernel is pending; as is one that is being proven, but
// for its test. The reference is valid as long as the process. `function` must be a string literal.
Kernel& find_kernel(Stream& stream, const Source& source, const char* function,
                    const Defines& defines);

// Whether kernels of the stream may be pending. A process's first program is always built at once:
// it loads the compiler, whose exit handlers must not run while a launch thread compiles.
bool defers_builds(const Stream& stream);

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
