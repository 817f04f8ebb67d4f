// A command that nobody waits for, while it is being made; for stream.cpp alone.
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/queue/command_queue.h"
#include "runtime/queue/kernel.h"

namespace ocltensor::opencl {

// A place in the launch thread's ring; or the queue's own, while the launch thread is held, for a
// command that is submitted at once. Holds the stream's lock.
class NextCommand {
 public:
  // `later`: the command shall not be submitted by this thread, if that can be avoided.
  explicit NextCommand(CommandQueue& queue, bool later = false)
      : queue_(queue), lock_(queue.mutex_) {
    LaunchThread* const thread = queue.launch_thread_.get();
    const bool is_usual = thread != nullptr && queue.driver_.is_in_session() &&
                          !queue.has_refusal_ && !queue.driver_.is_shared();
    if (is_usual) pending_ = thread->next(later);
    if (pending_ != nullptr) return;
    hold();
    if (queue.has_refusal_) [[unlikely]]
      queue.raise(queue.take_refusal());
    queue.driver_.follow_profiler();
  }

  Command* operator->() { return pending_ != nullptr ? pending_ : &queue_.at_once_; }

  // Copies `source` to staging memory.
  const void* stage(const void* source, uint64_t bytes) {
    void* staged = queue_.driver_.take_staging(bytes);
    if (staged == nullptr) {
      hold();
      staged = queue_.driver_.staging(bytes);
    }
    return std::memcpy(staged, source, bytes);
  }

  // To be called when all is filled in but for the last three members. Names for the profiler:
  // literals, or texts that live as long as the process.
  void issue(const char* category, const char* name, uint64_t bytes) {
    Command& command = *operator->();
    command.work.reset();
    if (queue_.driver_.is_traced())
      command.work = profiler::describe_command(category, name, bytes);
    command.waits = command.kernel != nullptr && command.kernel->is_pending();
    issue(command);
  }

  // A wait: no command for the driver.
  void issue_wait(cl::Event awaited) {
    Command& command = *operator->();
    command.work.reset();
    command.kernel = nullptr;
    command.awaited = std::make_shared<cl::Event>(std::move(awaited));
    command.waits = true;
    issue(command);
  }

 private:
  void hold() {
    if (queue_.launch_thread_ != nullptr && !held_.owns_lock())
      held_ = queue_.launch_thread_->hold(true);
  }

  void issue(Command& command) {
    queue_.driver_.progress().count();
    if (command.waits) [[unlikely]]
      ++queue_.waiting_;
    if (pending_ != nullptr) return queue_.launch_thread_->push();
    try {
      std::string call;
      const cl_int code = queue_.enqueue(command, call);
      queue_.driver_.check(code, call.c_str());
    } catch (...) {
      if (command.kernel != nullptr) command.kernel->forget_arguments();
      throw;
    }
  }

  CommandQueue& queue_;
  const std::lock_guard<std::mutex> lock_;
  std::unique_lock<std::mutex> held_;
  Command* pending_ = nullptr;
};

}  // namespace ocltensor::opencl
