// Streams: in-order command queues of one device, with a count of enqueued work that memory reuse
// is ordered by.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/driver/opencl.h"
#include "runtime/memory/staging.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/stream_trace.h"
#include "runtime/program/rehearsal.h"
#include "runtime/queue/faults.h"
#include "runtime/queue/launch_thread.h"
#include "runtime/queue/pace.h"

namespace ocltensor::opencl {

class Device;
class Event;

// Thread-safe: every method takes the stream's lock. A failure of enqueued work is kept with the
// names of the kernels that may have caused it and is raised, once, at the next synchronisation;
// the queue is then replaced by a fresh one. Wrong values that kernels met (Faults) are raised
// there, too, and change nothing else. Where there is a launch thread, a command that the driver
// refuses is raised by the next call of the stream instead of its own, and those between are
// dropped.
class Stream {
 public:
  // `place`: a small number that no other living stream of the device has.
  Stream(Device& device, uint64_t id, uint32_t place);
  ~Stream();
  Stream(const Stream&) = delete;

  Device& device() const { return device_; }
  uint64_t id() const { return id_; }
  uint32_t place() const { return place_; }

  // With the changes of its arguments, which it no longer has then.
  void launch(Kernel& kernel, const Range& range);
  // A kernel whose arguments are set. `name` must live as long as the process.
  void launch(cl_kernel kernel, const char* name, const Range& range);
  void write(cl_mem target, uint64_t offset, const void* source, uint64_t bytes, bool source_stays);
  void read(void* target, cl_mem source, uint64_t offset, uint64_t bytes, bool asynchronous);
  void copy(cl_mem target, uint64_t target_offset, cl_mem source, uint64_t source_offset,
            uint64_t bytes);
  void fill(cl_mem target, uint64_t offset, const void* pattern, uint32_t pattern_bytes,
            uint64_t bytes);
  void* map(cl_mem buffer, uint64_t offset, uint64_t bytes);
  void unmap(cl_mem buffer, void* memory);
  void wait_event(cl_event event);

  // An event that is reached when all work enqueued so far is; flushed. With timing it carries
  // device timestamps. What was refused is raised, and again by the next call.
  Handle<cl_event> marker(bool timing);
  // Without `raises` refusals are left to the next call, wrong values to the next synchronisation.
  void synchronize(bool raises = true);
  bool idle();
  // Leaves the profiler's session if it is over: waits, delivers what was traced.
  void end_trace();
  void collect_trace();  // delivers what has finished so far
  // An operator's call on this stream has ended: the trace gets a sample of the memory in use, and
  // its commands are waited for if the trace was asked to.
  void finish_operator();
  // For others' commands (interop). Commands are submitted at once from now on, so that they lie
  // in the queue when their calls return.
  cl_command_queue queue();

  bool has_launch_thread() const { return launch_thread_ != nullptr; }
  // Changes when commands have been dropped; no two streams ever have the same.
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  // Submits what waits for the launch thread; what it refuses is raised later.
  void submit_launches();
  void stop_launch_thread();

  Rehearsal& rehearsal() { return rehearsal_; }
  Faults& faults() { return faults_; }

  // Progress, for the memory pool (see StreamClock). Its waits have no user who looks for errors of
  // earlier work: these stay for the user's own.
  uint64_t enqueued() const { return enqueued_.load(std::memory_order_acquire); }
  bool passed(uint64_t ticket);
  void wait(uint64_t ticket);

 private:
  // The stream's lock, with all commands submitted and none of them refused.
  class Exclusive;
  std::unique_lock<std::mutex> hold_launches();  // none where there is no launch thread
  // What the next command is filled into; holds the stream's lock.
  class NextCommand;
  // CL_SUCCESS, or why the driver refused it, and what to call it.
  cl_int enqueue(Command& command, std::string& call);
  cl_int enqueue(cl_kernel kernel, const char* name, const Range& range, cl_event* event,
                 std::string& call);
  cl_int enqueue(const Transfer& transfer, cl_event* event, std::string& call);
  void submit(Command& command) noexcept;
  void raise_refusal();
  void write_large(cl_mem target, uint64_t offset, const void* source, uint64_t bytes);
  // Memory for a copy, and after the last of several: all commands are on the queue.
  void* staging(uint64_t bytes);
  void leave_staging();
  void enqueued_one(uint64_t bytes = 0);  // counts, and keeps the pace
  void check(cl_int code, const char* call);
  [[noreturn]] void raise_failure(cl_int code, const char* call);
  cl_command_queue profiling_queue();
  void poll_markers();
  // First thing of every command: joins or leaves the profiler's session.
  void follow_profiler() {
    if (const uint32_t now = profiler::session(); now != session_) [[unlikely]]
      change_session(now);
  }
  void change_session(uint32_t session);
  // Where the next command's event goes; nullptr while nothing is traced.
  cl_event* traced(const char* category, const char* name, uint64_t bytes) {
    return trace_ == nullptr ? nullptr
                             : trace_->next(profiler::describe_command(category, name, bytes));
  }

  Device& device_;
  const uint64_t id_;
  const uint32_t place_;
  bool is_shared_ = false;  // somebody has the queue
  // The queue, the trace and the names of launches are also the launch thread's, while the stream's
  // lock may be somebody else's; Exclusive keeps it out.
  std::mutex mutex_;
  Handle<cl_command_queue> queue_;
  Handle<cl_command_queue> profiling_queue_;
  Handle<cl_mem> stamp_;  // what timing events write, to be stamped
  std::atomic<uint64_t> enqueued_{0};
  std::atomic<uint64_t> completed_{0};
  Pace pace_;
  std::deque<std::pair<uint64_t, Handle<cl_event>>> markers_;
  static constexpr size_t kRecent = 8;
  std::array<const char*, kRecent> recent_{};  // names of the last launches
  uint64_t launches_ = 0;
  Staging staging_;
  uint32_t session_ = 0;  // of the profiler
  std::unique_ptr<StreamTrace> trace_;
  Rehearsal rehearsal_;
  Faults faults_;
  // Of a command that was submitted later than it was made; until it is raised.
  struct Refusal {
    cl_int code = CL_SUCCESS;
    std::string call;
  };
  Refusal refusal_;
  std::atomic<bool> has_refusal_{false};
  std::atomic<uint64_t> epoch_;
  Command at_once_{};  // a command that does not wait; its memory is used again
  std::unique_ptr<LaunchThread> launch_thread_;  // the last member: ends first
};

struct WorkCounters {
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> copies{0};
  std::atomic<uint64_t> copied_bytes{0};
};
WorkCounters& work_counters();

}  // namespace ocltensor::opencl
