// How far a stream's host may run ahead of its device. Without a bound, the queue of a loop that
// never waits grows until memory is exhausted, and the first wait then waits for all of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace ocltensor::opencl {

// The policy alone: after which commands a mark is set, and when the oldest mark has to be waited
// for. It allows as many commands in flight as the device runs in about kTime, estimated from the
// marks that were waited for, and kBytes of host memory that copies still use. Not thread-safe.
class RunAhead {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kTime{300};
  static constexpr uint64_t kBytes = uint64_t{256} << 20;
  static constexpr uint32_t kFewest = 16, kMost = 4096;  // commands, however long they take

  // Counts a command, which uses `bytes` of host memory until it has run. Returns whether it needs
  // a mark.
  bool add(uint64_t bytes);
  void mark(Clock::time_point now);  // the mark has been enqueued
  bool has_marks() const { return !marks_.empty(); }
  // Whether the oldest mark, which then exists, has to be waited for before more commands are made.
  bool is_too_far() const;
  // The oldest mark has been reached: just now if `waited`, else some time ago.
  void reach_oldest(Clock::time_point now, bool waited);
  void clear();  // to be called when nothing is in flight

  uint32_t allowed() const { return allowed_; }  // the number of commands in flight

 private:
  struct Mark {
    Clock::time_point made;
    uint32_t commands;  // since the previous mark
    uint64_t bytes;
  };
  std::deque<Mark> marks_;
  Mark next_{};               // the commands since the last mark
  uint32_t in_flight_ = 0;    // commands before the last mark
  uint64_t bytes_ = 0;        // of host memory that they use
  uint32_t allowed_ = 256;    // the initial value holds until the first mark has been waited for
  Clock::time_point last_{};  // when a mark was last reached by waiting
};

}  // namespace ocltensor::opencl
