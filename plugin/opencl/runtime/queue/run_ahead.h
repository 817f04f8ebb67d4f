// How far a stream's host may run ahead of its device. Without a bound the queue of a loop that
// waits for nothing grows until its memory ends, and whoever waits at last waits for all of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace ocltensor::opencl {

// The policy alone: which commands get a mark behind them, and when the oldest mark has to be
// waited for. It allows as many commands in flight as the device does in about kTime, found out
// from the marks that were waited for, and kBytes of host memory that copies still use. Not
// thread-safe.
class RunAhead {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kTime{300};
  static constexpr uint64_t kBytes = uint64_t{256} << 20;
  static constexpr uint32_t kFewest = 16, kMost = 4096;  // commands, whatever they take

  // A command more, which uses `bytes` of host memory until it has run. Does it want a mark?
  bool add(uint64_t bytes);
  void mark(Clock::time_point now);  // the mark is on the queue
  bool has_marks() const { return !marks_.empty(); }
  // Has the oldest mark to be waited for before more commands are made? There is one then.
  bool is_too_far() const;
  // The oldest mark was reached: `waited`, just now, else some time ago.
  void reach_oldest(Clock::time_point now, bool waited);
  void clear();  // nothing is in flight any more

  uint32_t allowed() const { return allowed_; }  // commands in flight

 private:
  struct Mark {
    Clock::time_point made;
    uint32_t commands;  // since the mark before
    uint64_t bytes;
  };
  std::deque<Mark> marks_;
  Mark next_{};               // what the next mark will stand for
  uint32_t in_flight_ = 0;    // commands before the last mark
  uint64_t bytes_ = 0;        // of them
  uint32_t allowed_ = 256;    // until the first mark has been waited for
  Clock::time_point last_{};  // when a mark was reached by waiting
};

}  // namespace ocltensor::opencl
