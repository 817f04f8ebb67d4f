// A thread of a stream that submits commands to the driver, so that threads that call operators do
// not wait for the driver (NVIDIA's takes 6 microseconds per launch, 14 if it stamps it for the
// profiler).
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

// A ring with one producer at a time (the holder of the stream's lock) and one consumer at a time
// (the holder of this object's lock: the thread, or another one that needs the queue). The thread
// starts with the first burst of launches, waits actively for more for a while after the last one,
// then sleeps.
class LaunchThread {
 public:
  // `submit` is called with this object's lock held, in the order of the commands. `all`: any
  // burst of commands is left to the thread; else those that come later, and what follows them.
  LaunchThread(std::function<void(Command&)> submit, bool all);
  ~LaunchThread();  // commands that are left are not submitted
  LaunchThread(const LaunchThread&) = delete;

  // For the producer. If next() returns null the command should be submitted at once: the thread
  // sleeps, and waking it for few commands does not pay, unless the command is to come `later`.
  // Otherwise it returns the command to fill, and then to push().
  Command* next(bool later = false);
  void push();

  // Submits all waiting commands in the calling thread, and keeps the thread out while the result
  // lives. Ends a burst, unless it is called for a command that is submitted at once.
  std::unique_lock<std::mutex> hold(bool for_command = false);

  // Whether everything has been submitted.
  bool is_empty() const {
    return taken_.load(std::memory_order_acquire) == filled_.load(std::memory_order_acquire);
  }

  // Ends the thread, if it runs; it does not start again.
  void stop();

  // Has the threads of all streams, the proofs and all compiling (process_end.h) stopped before
  // what drivers and compilers have registered so far runs at the process's exit. Thread-safe.
  static void stop_all_at_exit();
  // The same, if a kernel has been made since that the driver compiles at its launch: to be called
  // when launches have run.
  static void stop_all_at_exit_if_compiled() {
    if (launches_compile_.load(std::memory_order_relaxed)) [[unlikely]]
      if (launches_compile_.exchange(false)) stop_all_at_exit();
  }
  static void note_compiling_launch() { launches_compile_ = true; }

 private:
  void run();
  bool wait_for_work();  // false: the thread shall end
  std::unique_lock<std::mutex> take_lock();
  void submit_one();
  void wake();

  static std::atomic<bool> launches_compile_;
  // A power of two; a step's launches while their programs are built.
  static constexpr uint32_t kSlots = 2048;
  const std::function<void(Command&)> submit_;
  const bool all_;
  std::mutex mutex_;
  std::unique_ptr<std::array<Command, kSlots>> slots_;
  std::thread thread_;
  uint32_t at_once_ = 0;  // commands since the last hold() that found the thread asleep
  // On cache lines of their own, because two threads write them.
  alignas(64) std::atomic<uint32_t> filled_{0};
  alignas(64) std::atomic<uint32_t> taken_{0};
  alignas(64) std::atomic<int32_t> awake_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> wanted_{false};  // a thread waits for the lock
};

}  // namespace ocltensor::opencl
