// How far a host runs ahead, with a device that is a clock.
#include "runtime/queue/run_ahead.h"

#include <gtest/gtest.h>

namespace ocltensor::opencl {
namespace {

using Clock = RunAhead::Clock;
using std::chrono::microseconds;

// Runs commands one after the other; the host makes them in no time, and waits as it is told to.
class Device {
 public:
  void submit(microseconds takes, uint64_t bytes = 0) {
    done_ = std::max(done_, now_) + takes;
    const bool wants_mark = ahead_.add(bytes);
    held_ += bytes;
    if (wants_mark) {
      ahead_.mark(now_);
      marks_.push_back({done_, held_});
    }
    while (!marks_.empty() && marks_.front().at <= now_) reach(false);
    while (ahead_.is_too_far()) {
      ++waits_;
      now_ = std::max(now_, marks_.front().at);
      reach(true);
    }
  }
  void pass(microseconds time) { now_ += time; }
  microseconds left() const {
    return std::max(microseconds(0), std::chrono::duration_cast<microseconds>(done_ - now_));
  }
  uint64_t held() const { return held_ - released_; }
  int waits() const { return waits_; }
  const RunAhead& ahead() const { return ahead_; }

 private:
  struct Mark {
    Clock::time_point at;
    uint64_t held;
  };
  void reach(bool waited) {
    released_ = marks_.front().held;
    marks_.pop_front();
    ahead_.reach_oldest(now_, waited);
  }
  RunAhead ahead_;
  std::deque<Mark> marks_;
  Clock::time_point now_{std::chrono::hours(1)}, done_{};
  uint64_t held_ = 0, released_ = 0;
  int waits_ = 0;
};

// Whatever commands take, what waits for all of them at the end waits for less than a second, and
// the device always has something to do.
TEST(RunAhead, FollowsThePaceOfTheDevice) {
  for (const int each : {2, 20, 200, 2'000, 20'000}) {
    Device device;
    for (int i = 0; i < 20'000; ++i) {
      device.submit(microseconds(each));
      if (i > 1000) {
        ASSERT_LT(device.left().count(), 1'000'000) << each << " us, command " << i;
        ASSERT_GT(device.left().count(), 4 * each) << each << " us, command " << i;
      }
    }
    EXPECT_GT(device.waits(), 0);
  }
}

// Commands that become slow shrink what is allowed; quick ones let it grow again.
TEST(RunAhead, FollowsAChange) {
  Device device;
  for (int i = 0; i < 10'000; ++i) device.submit(microseconds(5));
  EXPECT_GT(device.ahead().allowed(), 2000u);
  for (int i = 0; i < 10'000; ++i) device.submit(microseconds(10'000));
  EXPECT_LT(device.ahead().allowed(), 64u);
  EXPECT_LT(device.left().count(), 1'000'000);
  for (int i = 0; i < 20'000; ++i) device.submit(microseconds(5));
  EXPECT_GT(device.ahead().allowed(), 2000u);
}

TEST(RunAhead, NeverWaitsForADeviceThatKeepsUp) {
  Device device;
  for (int i = 0; i < 100'000; ++i) {
    device.submit(microseconds(4));
    device.pass(microseconds(5));
  }
  EXPECT_EQ(device.waits(), 0);
}

TEST(RunAhead, BoundsTheMemoryOfCopies) {
  Device device;
  constexpr uint64_t kBatch = uint64_t{20} << 20;
  for (int i = 0; i < 1000; ++i) {
    device.submit(microseconds(100), kBatch);
    ASSERT_LE(device.held(), RunAhead::kBytes + 4 * kBatch);
  }
  EXPECT_GT(device.waits(), 0);
}

}  // namespace
}  // namespace ocltensor::opencl
