// Random number generators: a Philox4x32-10 key (seed) and the next counter (offset).
#pragma once

#include <cstdint>
#include <mutex>

namespace ocltensor::opencl {

class Device;

// Thread-safe.
class Generator {
 public:
  explicit Generator(Device& device, uint64_t seed = 67280421310721)
      : device_(device), seed_(seed) {}
  Device& device() const { return device_; }

  struct State {
    uint64_t seed;
    uint64_t offset;
  };
  State get() {
    std::lock_guard lock(mutex_);
    return {seed_, offset_};
  }
  void set(State state) {
    std::lock_guard lock(mutex_);
    seed_ = state.seed;
    offset_ = state.offset;
  }
  // Reserves `blocks` counters (of four 32-bit words each) and returns the state before.
  State advance(uint64_t blocks) {
    std::lock_guard lock(mutex_);
    const State before{seed_, offset_};
    offset_ += blocks;
    return before;
  }

 private:
  Device& device_;
  std::mutex mutex_;
  uint64_t seed_;
  uint64_t offset_ = 0;
};

}  // namespace ocltensor::opencl
