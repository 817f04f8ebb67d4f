// DistributedDataParallel's timings on ocl (_get_ddp_logging_data), by events of the device. It
// measures the first ten steps and every hundredth.
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <optional>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "runtime/stream.h"
#include "statistics.h"

namespace torch_ocl::distributed {
namespace {

class OclTimer final : public c10d::Timer {
 public:
  explicit OclTimer(c10::Device device) : device_(device) {}

  void record(Event event) override {
    c10d::Timer::record(event);  // the host's time
    events_[static_cast<size_t>(event)].emplace(kOcl, c10::EventFlag::BACKEND_DEFAULT);
    events_[static_cast<size_t>(event)]->record(current_stream(device_.index()));
  }

  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const std::optional<int64_t> found = between(start, end);
    // Asked once a step, after a backward pass that has summed gradients.
    if (found && start == Event::kBackwardCommStart && end == Event::kBackwardCommEnd)
      if (const auto exposed = between(Event::kBackwardComputeEnd, end))
        count_step(std::chrono::nanoseconds(*exposed));
    return found;
  }

 private:
  // Nanoseconds; nothing where one was not recorded, or where they are of different steps.
  std::optional<int64_t> between(Event start, Event end) {
    const auto& first = events_[static_cast<size_t>(start)];
    const auto& last = events_[static_cast<size_t>(end)];
    if (!first || !last) return std::nullopt;
    first->synchronize();
    last->synchronize();
    const double milliseconds = first->elapsedTime(*last);
    if (milliseconds < 0) return std::nullopt;
    return static_cast<int64_t>(milliseconds * 1e6);
  }

  c10::Device device_;
  std::array<std::optional<c10::Event>, 5> events_;  // by the event's number
};

}  // namespace

}  // namespace torch_ocl::distributed

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, torch_ocl::kOcl, torch_ocl::distributed::OclTimer)
}  // namespace c10d
