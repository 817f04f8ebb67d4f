// The order of a stream's commands: who may enqueue the next one, and which of them a launch thread
// submits to the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/queue/command.h"
#include "runtime/queue/driver_queue.h"
#include "runtime/queue/launch_thread.h"

namespace ocltensor::opencl {

// Thread-safe. Two locks: the stream's, of who makes commands (lock()), and, inside of it, the
// launch thread's, of who submits them. A command that the driver refuses after its call has
// returned is kept as a refusal until it is raised; commands behind it are dropped. Commands that
// nobody waits for are made by a NextCommand (next_command.h), all else holds the queue.
class CommandQueue {
 public:
  CommandQueue(Device& device, uint64_t stream);
  CommandQueue(const CommandQueue&) = delete;

  // The stream's lock alone: commands may still be on their way to the driver.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  bool has_launch_thread() const { return launch_thread_ != nullptr; }
  // Submits the commands that wait for the launch thread; refusals are raised later.
  void submit_all();
  // The same, but waits neither for programs and proofs nor for other devices: false if some
  // command does.
  bool try_submit_all();
  void stop_launch_thread();

  // Changes when commands have been dropped; no two streams ever have the same value.
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  // From now on kernels pass all of their arguments.
  void renew_epoch() { epoch_.fetch_add(1, std::memory_order_relaxed); }

  uint64_t enqueued() { return driver_.progress().enqueued(); }
  bool is_over() { return driver_.progress().is_over(); }
  // Never waits for a program, a proof or another device: it may then be false for a ticket that
  // has passed.
  bool passed(uint64_t ticket);

 private:
  friend class HeldQueue;
  friend class NextCommand;

  struct Refusal {
    cl_int code = CL_SUCCESS;
    std::string call;
    std::exception_ptr error;  // instead of a code
  };

  // The stream's lock; empty if some command waits. Who has the lock meanwhile may wait for a
  // proof, which may need what the caller holds.
  std::unique_lock<std::mutex> lock_unless_waiting();
  std::unique_lock<std::mutex> hold_launches();  // empty without a launch thread
  // CL_SUCCESS, or the driver's error, with a text in `call` for the message.
  cl_int enqueue(Command& command, std::string& call);
  cl_int wait_for(const cl::Event& awaited, std::string& call);
  void submit(Command& command) noexcept;  // with the launch thread's lock
  void drop(Command& command);
  Refusal take_refusal();
  void raise(const Refusal& refusal);

  std::mutex mutex_;
  DriverQueue driver_;
  Refusal refusal_;
  std::atomic<bool> has_refusal_{false};
  std::atomic<uint64_t> epoch_;
  Command at_once_{};            // for commands that are submitted at once; its memory is reused
  std::atomic<int> waiting_{0};  // commands that may have to wait before they are submitted
  std::unique_ptr<LaunchThread> launch_thread_;  // the last member, so that it ends first
};

// Both locks, with all commands submitted.
class HeldQueue {
 public:
  explicit HeldQueue(CommandQueue& queue)
      : queue_(queue), lock_(queue.mutex_), launches_(queue.hold_launches()) {}
  DriverQueue* operator->() const { return &queue_.driver_; }
  DriverQueue& operator*() const { return queue_.driver_; }

  void raise_refusal() const;
  void tell_refusal() const;  // the next call raises it again

 private:
  CommandQueue& queue_;
  const std::lock_guard<std::mutex> lock_;
  const std::unique_lock<std::mutex> launches_;
};

// The same, with no command refused, in the profiler's session: ready for the next command.
class ReadyQueue : public HeldQueue {
 public:
  explicit ReadyQueue(CommandQueue& queue) : HeldQueue(queue) {
    raise_refusal();
    (*this)->follow_profiler();
  }
};

}  // namespace ocltensor::opencl
