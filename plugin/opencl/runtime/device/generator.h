// Random number generators: a Philox4x32-10 key (seed) and the next counter (offset).
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "ocltensor/error.h"

namespace ocltensor::opencl {

class Device;

// Thread-safe.
//
// While a graph is recorded, the generator gives a marker in place of its seed, and offsets from 0:
// so the recording finds all numbers that a replay has to replace, whichever way they went.
class Generator {
 public:
  explicit Generator(Device& device, uint64_t seed = 67280421310721)
      : device_(device), state_{seed, 0} {}
  Device& device() const { return device_; }

  struct State {
    uint64_t seed;
    uint64_t offset;
  };
  State get() {
    std::lock_guard lock(mutex_);
    return state_;
  }
  // TB_E_STATE for another seed than the marker while a graph is recorded.
  void set(State state) {
    std::lock_guard lock(mutex_);
    if (is_marked_ && state.seed != state_.seed)
      fail(TB_E_STATE,
           "a graph that is being recorded uses this generator: seed it before the recording, or "
           "between replays");
    state_ = state;
    most_ = std::max(most_, state.offset);
  }
  // Reserves `blocks` counters (of four 32-bit words each) and returns the state before.
  State advance(uint64_t blocks) {
    std::lock_guard lock(mutex_);
    const State before = state_;
    state_.offset += blocks;
    most_ = std::max(most_, state_.offset);
    return before;
  }

  // TB_E_STATE if it is marked.
  void mark(uint64_t marker) {
    std::lock_guard lock(mutex_);
    if (is_marked_)
      fail(TB_E_STATE, "another graph is being recorded, which uses the same generator");
    is_marked_ = true;
    before_ = state_;
    state_ = {marker, 0};
    most_ = 0;
  }
  // Returns to the state before mark(). The result: the counters that were taken meanwhile.
  uint64_t unmark() {
    std::lock_guard lock(mutex_);
    is_marked_ = false;
    state_ = before_;
    return most_;
  }
  bool is_marked() {
    std::lock_guard lock(mutex_);
    return is_marked_;
  }

 private:
  Device& device_;
  std::mutex mutex_;
  State state_;
  bool is_marked_ = false;
  State before_{};     // of a marked one
  uint64_t most_ = 0;  // the highest offset since it was marked
};

}  // namespace ocltensor::opencl
