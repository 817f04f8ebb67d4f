// The driver's queue of a stream, and what its commands need: pace, staging memory, timestamps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/driver/clhpp.h"
#include "runtime/memory/staging.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/stream_trace.h"
#include "runtime/queue/command.h"
#include "runtime/queue/pace.h"
#include "runtime/queue/progress.h"

namespace ocltensor::opencl {

class Device;

// For the holder of a CommandQueue (HeldQueue). The enqueue() functions, event() and
// flush() are also for the launch thread, which the holder keeps out; they throw nothing, and
// return CL_SUCCESS, or the driver's error with a text in `call` for the message.
class DriverQueue {
 public:
  DriverQueue(Device& device, uint64_t stream);
  ~DriverQueue();  // waits for the commands
  DriverQueue(const DriverQueue&) = delete;

  cl_int enqueue(cl_kernel kernel, const char* name, const Range& range, cl_event* event,
                 std::string& call);
  cl_int enqueue(const Transfer& transfer, cl_event* event, std::string& call);
  cl_int flush(std::string& call);
  // Where the event of a command shall go that was described as `work`.
  cl_event* event(const profiler::DeviceWork& work) {
    return trace_ == nullptr ? nullptr : trace_->event(work);
  }

  Device& device() const { return device_; }
  cl_command_queue get() const { return queue_(); }
  // The handle for others, which may enqueue commands of their own from now on.
  cl_command_queue share() {
    is_shared_ = true;
    return queue_();
  }
  bool is_shared() const { return is_shared_; }
  Progress& progress() { return progress_; }

  // Counts a command that was enqueued here, and keeps the pace; `bytes` of host memory are used
  // until it has run.
  void count(uint64_t bytes = 0);
  void flush();
  // Reached when all commands so far have run; the queue is flushed. With `timing` it carries
  // device timestamps.
  cl::Event marker(bool timing);
  bool mark_progress();  // false if the driver refuses
  // Waits until all commands have finished, also what stamps events.
  void finish();
  // finish(), unless none of the commands can be running any more.
  void settle();
  bool is_settled() const { return progress_.is_over() && !is_shared_; }

  // Staging memory for a copy, which may wait for earlier copies. leave_staging() is to be called
  // after the last of several, when all are on the queue.
  void* staging(uint64_t bytes);
  void* take_staging(uint64_t bytes) { return staging_.take(bytes); }  // null: it has to wait
  void leave_staging();

  // Raises the driver's error. One that tells that work was lost comes with the names of the last
  // kernels, and a new queue takes the place of this one.
  void check(cl_int code, const char* call);

  // To be called before every command: joins or leaves the profiler's session.
  void follow_profiler() {
    if (const uint32_t now = profiler::session(); now != session_) [[unlikely]]
      change_session(now);
  }
  bool is_in_session() const { return profiler::session() == session_; }
  bool is_traced() const { return trace_ != nullptr; }
  // Describes the next command for the trace, and says where its event shall go.
  cl_event* traced(const char* category, const char* name, uint64_t bytes) {
    return trace_ == nullptr ? nullptr
                             : trace_->event(profiler::describe_command(category, name, bytes));
  }
  void collect_trace();  // delivers the commands that have finished so far

 private:
  // Names of the last launches, for errors.
  struct Recent {
    static constexpr size_t kMost = 8;
    std::array<const char*, kMost> names{};
    uint64_t count = 0;
    void add(const char* name) { names[count++ % kMost] = name; }
    std::string text() const;  // newest first
  };
  // Stamps events: the command on a second queue that does.
  struct Stamps {
    cl::CommandQueue queue;
    cl::Buffer written;
  };

  cl_int keep_pace(uint64_t bytes, std::string& call);
  cl_int wait_after_new_program(const char* name, std::string& call);
  cl::Event stamp(cl_event reached);
  void finish(cl_command_queue queue);
  [[noreturn]] void raise_loss(cl_int code, const char* call);
  void change_session(uint32_t session);

  Device& device_;
  const uint64_t stream_;
  cl::CommandQueue queue_;
  bool is_shared_ = false;  // others have the queue's handle
  Stamps stamps_;
  Pace pace_;
  Staging staging_;
  Progress progress_;
  Recent recent_;
  uint64_t programs_ = 0;  // of the process, at the last launch
  uint32_t session_ = 0;   // the profiler's
  std::unique_ptr<StreamTrace> trace_;
};

}  // namespace ocltensor::opencl
