// Places marks, and derives the bound from the device's pace.
#include "run_ahead.h"

#include <algorithm>

namespace ocltensor::opencl {
namespace {

constexpr uint32_t kMarks = 8;  // between the device's position and the end of the queue

}  // namespace

bool RunAhead::add(uint64_t bytes) {
  ++next_.commands;
  next_.bytes += bytes;
  return next_.commands >= std::max(1u, std::min(64u, allowed_ / kMarks)) ||
         next_.bytes >= kBytes / kMarks;
}

void RunAhead::mark(Clock::time_point now) {
  next_.made = now;
  in_flight_ += next_.commands;
  bytes_ += next_.bytes;
  marks_.push_back(next_);
  next_ = {};
}

bool RunAhead::is_too_far() const {
  return marks_.size() > 1 && (in_flight_ >= allowed_ || bytes_ >= kBytes);
}

void RunAhead::reach_oldest(Clock::time_point now, bool waited) {
  const Mark mark = marks_.front();
  marks_.pop_front();
  in_flight_ -= mark.commands;
  bytes_ -= mark.bytes;
  if (!waited) return;
  // The device began with these commands when it reached the previous mark, or later.
  const auto took =
      std::max<Clock::duration>(now - std::max(last_, mark.made), std::chrono::microseconds(1));
  last_ = now;
  const auto pace = static_cast<uint64_t>(mark.commands) * Clock::duration(kTime).count() /
                    static_cast<uint64_t>(took.count());
  // Half of the change is applied, so that a single odd interval does not decide.
  const auto wanted = static_cast<uint32_t>(std::clamp<uint64_t>(pace, kFewest, kMost));
  allowed_ = std::clamp((allowed_ + wanted) / 2, kFewest, kMost);
}

void RunAhead::clear() {
  marks_.clear();
  next_ = {};
  in_flight_ = 0;
  bytes_ = 0;
}

}  // namespace ocltensor::opencl
