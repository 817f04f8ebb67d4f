// Kernels as commands of a stream. A kernel object belongs to one thread, because clSetKernelArg is
// not safe on a shared one, and also to one stream if launches go through the stream's launch
// thread. It remembers its arguments, so that a repeated launch sets only those that changed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/driver/opencl.h"
#include "runtime/queue/command.h"
#include "runtime/queue/kernel_arguments.h"

namespace ocltensor::opencl {

class Device;
class Program;

class Kernel {
 public:
  // `group_limit` as group_limit() of caps.h; without it launches are left as they are.
  Kernel(cl_kernel kernel, const char* name, uint32_t group_limit = UINT32_MAX);
  // A pending kernel, of a program that is still to be built, or `unproven`: its launches are
  // records of a launch thread, where make() is called before the first one is submitted.
  Kernel(Device& device, std::shared_ptr<Program> program, const char* name, bool unproven)
      : name_(name), pending_build_(new Later{device, std::move(program), unproven}) {}
  cl_kernel get() const { return kernel_; }
  // The kernel `name` of a program that is built here and now, if it is missing. Throws as
  // ProgramCache::get() does, and Error(TB_E_INTERNAL) if the program has no such kernel.
  static std::unique_ptr<Kernel> made(Device& device, Program& program, const char* name);
  bool is_pending() const {
    return pending_build_ != nullptr && !is_made_.load(std::memory_order_acquire);
  }
  // For those who submit: builds the program, or waits for who builds it, and for the verdict.
  void make();
  // Whether this stands for a kernel whose program has not been built (see Rehearsal): it is never
  // launched.
  bool is_placeholder() const { return is_placeholder_; }
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
    if (is_placeholder()) [[unlikely]]
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
  const bool is_placeholder_ = false;
  uint32_t group_limit_ = UINT32_MAX;
  const std::unique_ptr<const Later> pending_build_;
  std::atomic<bool> is_made_{false};
  std::array<Remembered, kRemembered> remembered_{};
  ArgumentChanges changes_;
  uint64_t epoch_ = 0;  // the stream's epoch at the last use
};

}  // namespace ocltensor::opencl
