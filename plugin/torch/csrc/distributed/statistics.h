// What calls of this process did and where their time went, for torch.ocl.distributed.summary().
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "torch_ocl/export.h"

namespace torch_ocl::distributed {

using Clock = std::chrono::steady_clock;

// The parts of a call, one after another. `Queue`: behind other calls of its lane. `Peers`: until
// the rank before this one has come. `Device`: until the device has computed what is sent, and
// until the host sees it where it is mapped. `Copies`: to and from page-locked memory; those back
// to the device are only enqueued. `Engine`: in the engine, with its sums, and with its waiting for
// ranks that come later.
enum class Part { Queue, Peers, Device, Copies, Engine };
constexpr size_t kParts = 5;

// Times a call's parts.
class Stopwatch {
 public:
  explicit Stopwatch(Clock::time_point begin) : last_(begin) {}
  // What has passed since the last part's end belongs to this one.
  void end(Part part) {
    const Clock::time_point now = Clock::now();
    parts_[static_cast<size_t>(part)] += now - last_;
    last_ = now;
  }
  const std::array<Clock::duration, kParts>& parts() const { return parts_; }

 private:
  Clock::time_point last_;
  std::array<Clock::duration, kParts> parts_{};
};

// Of all calls of a kind that have succeeded.
struct Totals {
  uint64_t calls = 0, bytes = 0;  // the larger of what they read and of what they wrote
  std::array<Clock::duration, kParts> parts{};
  Clock::duration waited{};  // in which threads were held in Work.wait()
};

struct Statistics {
  std::map<c10d::OpType, Totals> calls;
  // DistributedDataParallel's backward passes that were timed, and for how long in all the device
  // had computed its gradients and waited for their sums.
  uint64_t steps = 0;
  Clock::duration exposed{};
};

void count_call(c10d::OpType op, size_t bytes, const Stopwatch& watch);
void count_wait(c10d::OpType op, Clock::duration waited);
void count_step(Clock::duration exposed);
TORCH_OCL_API Statistics statistics();
TORCH_OCL_API void reset_statistics();
// Whether copies are told apart from the device's own time, which takes one more wait of the host:
// once somebody has reset the statistics.
bool parts_are_told_apart();

// "ocl:all_reduce": the name of a call's row in a profile.
TORCH_OCL_API const char* title_of(c10d::OpType op);

}  // namespace torch_ocl::distributed
