// Commands on their way to the driver: a thread of the stream submits them, so that the threads
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
#include <thread>

#include "runtime/queue/command.h"

namespace ocltensor::opencl {

// A ring with one producer at a time (who holds the stream's lock) and one consumer at a time (who
// holds this object's lock: the thread, or whoever needs the queue now). The thread starts with the
// first burst of launches, looks for more for a while after the last one, then sleeps.
class LaunchThread {
 public:
  // `submit` is called with this object's lock held, in the order of the commands.
  explicit LaunchThread(std::function<void(Command&)> submit);
  ~LaunchThread();  // what is left is not submitted
  LaunchThread(const LaunchThread&) = delete;

  // The producer's. Where next() is null the command is better submitted at once: the thread
  // sleeps, and few commands would not be worth waking it. Else it is what to fill and push().
  Command* next();
  void push();

  // Submits everything that waits, in the calling thread, and keeps the thread out while the
  // result lives. Ends a burst, unless it is for a command that is submitted at once.
  std::unique_lock<std::mutex> hold(bool for_command = false);

  // Has everything been submitted?
  bool is_empty() const {
    return taken_.load(std::memory_order_acquire) == filled_.load(std::memory_order_acquire);
  }

  // The thread ends, if it runs, and does not start again.
  void stop();

 private:
  void run();
  bool wait_for_work();  // false: to end
  std::unique_lock<std::mutex> take_lock();
  void submit_one();
  void wake();

  static constexpr uint32_t kSlots = 512;  // a power of two
  const std::function<void(Command&)> submit_;
  std::mutex mutex_;
  std::unique_ptr<std::array<Command, kSlots>> slots_;
  std::thread thread_;
  uint32_t at_once_ = 0;  // commands since the last hold() that found the thread asleep
  // Each on a line of its own: two threads write them.
  alignas(64) std::atomic<uint32_t> filled_{0};
  alignas(64) std::atomic<uint32_t> taken_{0};
  alignas(64) std::atomic<int32_t> awake_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> wanted_{false};  // somebody waits for the lock
};

}  // namespace ocltensor::opencl
