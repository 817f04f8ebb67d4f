// Launches on their way to the driver: a thread of the stream hands them over, so that the threads
// that call operators do not wait for the driver (NVIDIA's: 6 microseconds a launch, 14 if it
// stamps it for the profiler).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "kernel_arguments.h"
#include "profiler.h"

namespace ocltensor::opencl {

class Kernel;

struct Range {
  uint32_t rank;
  std::array<size_t, 3> global;
  std::array<size_t, 3> local;  // all 0: the driver chooses
};

struct PendingLaunch {
  Kernel* kernel;
  Range range;
  ArgumentChanges changes;                   // since the kernel's last launch
  std::optional<profiler::DeviceWork> work;  // while the profiler is on
};

// A ring with one producer at a time (who holds the stream's lock) and one consumer at a time (who
// holds this object's lock: the thread, or whoever needs the queue now). The thread starts with the
// first burst of launches, looks for more for a while after the last one, then sleeps.
class LaunchThread {
 public:
  // `hand_over` is called with this object's lock held, in the order of the launches.
  explicit LaunchThread(std::function<void(PendingLaunch&)> hand_over);
  ~LaunchThread();  // what is left is not handed over
  LaunchThread(const LaunchThread&) = delete;

  // The producer's. Where next() is null the launch is better handed over at once: the thread
  // sleeps, and few launches would not be worth waking it. Else it is what to fill and push().
  PendingLaunch* next();
  void push();

  // Hands over everything that waits, in the calling thread, and keeps the thread out while the
  // result lives. Ends a burst, unless it is for a launch that is made at once.
  std::unique_lock<std::mutex> hold(bool for_launch = false);

  // Has everything been handed over?
  bool is_empty() const {
    return taken_.load(std::memory_order_acquire) == filled_.load(std::memory_order_acquire);
  }

  // The thread ends, if it runs, and does not start again.
  void stop();

 private:
  void run();
  bool wait_for_work();  // false: to end
  void hand_over_one();
  void wake();

  static constexpr uint32_t kSlots = 512;  // a power of two
  const std::function<void(PendingLaunch&)> hand_over_;
  std::mutex mutex_;
  std::unique_ptr<std::array<PendingLaunch, kSlots>> slots_;
  std::thread thread_;
  uint32_t at_once_ = 0;  // launches since the last hold() that found the thread asleep
  // Each on a line of its own: two threads write them.
  alignas(64) std::atomic<uint32_t> filled_{0};
  alignas(64) std::atomic<uint32_t> taken_{0};
  alignas(64) std::atomic<int32_t> awake_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace ocltensor::opencl
