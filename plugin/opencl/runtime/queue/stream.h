// Streams: in-order command queues of one device, with a count of enqueued work by which the reuse
// of memory is ordered.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/opencl.h"
#include "runtime/observe/profiler.h"
#include "runtime/program/rehearsal.h"
#include "runtime/queue/faults.h"
#include "runtime/queue/launch_thread.h"

namespace ocltensor::opencl {

class Device;
class Event;
class Graph;
class GraphRecording;
class StreamTrace;

// Thread-safe: every method takes the stream's lock. A failure of enqueued work is kept with the
// names of the kernels that may have caused it and is raised, once, at the next synchronisation;
// the queue is then replaced by a new one. Invalid values that kernels met (Faults) are raised
// there, too, without further effects. With a launch thread, a command that the driver refuses is
// raised by the stream's next call instead of its own, and commands in between are dropped.
class Stream {
 public:
  // `place`: a small number that no other existing stream of the device has.
  Stream(Device& device, uint64_t id, uint32_t place);
  ~Stream();
  Stream(const Stream&) = delete;

  Device& device() const { return device_; }
  uint64_t id() const { return id_; }
  uint32_t place() const { return place_; }

  // Launches a kernel, and takes the changes of its arguments from it.
  void launch(Kernel& kernel, const Range& range);
  void write(cl_mem target, uint64_t offset, const void* source, uint64_t bytes, bool source_stays);
  void read(void* target, cl_mem source, uint64_t offset, uint64_t bytes, bool asynchronous);
  void copy(cl_mem target, uint64_t target_offset, cl_mem source, uint64_t source_offset,
            uint64_t bytes);
  void fill(cl_mem target, uint64_t offset, const void* pattern, uint32_t pattern_bytes,
            uint64_t bytes);
  void* map(cl_mem buffer, uint64_t offset, uint64_t bytes,
            cl_map_flags flags = CL_MAP_READ | CL_MAP_WRITE);
  void unmap(cl_mem buffer, void* memory);
  void wait_event(cl_event event);

  // An event that is reached when all work enqueued so far has finished; the queue is flushed. With
  // `timing` it carries device timestamps. An earlier refusal is raised, and again by the next
  // call.
  cl::Event marker(bool timing);
  // Without `raises` refusals are raised by the next call, invalid values by the next
  // synchronisation.
  void synchronize(bool raises = true);
  bool idle();
  // Leaves the profiler's session if it is over: waits, and delivers the recorded commands.
  void end_trace();
  void collect_trace();  // delivers the commands that have finished so far
  // Ends an operator's call on this stream: samples the memory in use for the trace, and waits for
  // the operator's commands if the trace asks for it.
  void finish_operator();
  // For commands of others (interop). From now on commands are submitted at once, so that they are
  // in the queue when their calls return.
  cl_command_queue queue();

  bool has_launch_thread() const { return launch_thread_ != nullptr; }
  // Changes when commands have been dropped; no two streams ever have the same value.
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  // Submits the commands that wait for the launch thread; refusals are raised later.
  void submit_launches();
  // As submit_launches(), but waits for no program and no proof: false if some command does.
  bool try_submit_launches();
  void stop_launch_thread();

  Rehearsal& rehearsal() { return rehearsal_; }
  // Those of the graph while one is recorded.
  Faults& faults() { return *faults_in_use_.load(std::memory_order_relaxed); }

  // Graphs (stream_graph.cpp). While it records, launches, writes, copies and fills are kept in the
  // recording, and not executed; forbid_recording() is called for all else.
  bool is_recording() const { return is_recording_.load(std::memory_order_relaxed); }
  void begin_recording(std::unique_ptr<GraphRecording> recording);
  std::unique_ptr<GraphRecording> end_recording();  // null: it did not record
  // Throws TB_E_STATE, and fails the recording, if there is one. `what`: "reading results".
  void forbid_recording(const char* what) {
    if (is_recording()) [[unlikely]]
      fail_recording(what);
  }
  // Names the operator that has just failed the recording.
  void name_failure(const std::string& operation);
  // Keeps a buffer as long as the recording's graph; does nothing without a recording.
  void keep_recorded(cl::Buffer& buffer);
  void replay(Graph& graph);

  // Progress, for the memory pool (see StreamClock). These waits do not raise errors of earlier
  // work, which are kept for the user's own waits. passed() never waits for a program or a proof:
  // it may then be false for a ticket that has passed. Nor does wait(), if the thread tests a
  // kernel: the stream may wait for the verdict.
  uint64_t enqueued() const { return enqueued_.load(std::memory_order_acquire); }
  bool passed(uint64_t ticket);
  void wait(uint64_t ticket);

 private:
  // Holds the stream's lock, with all commands submitted and none of them refused.
  class Exclusive;
  std::unique_lock<std::mutex> hold_launches();  // empty without a launch thread
  // The stream's lock; empty if some command waits for a program or a proof. Who has the lock
  // meanwhile may wait for a proof, which may need what the caller holds.
  std::unique_lock<std::mutex> lock_unless_unbuilt();
  // The command to fill in next; holds the stream's lock.
  class NextCommand;
  // CL_SUCCESS, or the driver's error, with a text in `call` for the message.
  cl_int enqueue(Command& command, std::string& call);
  cl_int enqueue(cl_kernel kernel, const char* name, const Range& range, cl_event* event,
                 std::string& call);
  cl_int enqueue(const Transfer& transfer, cl_event* event, std::string& call);
  void submit(Command& command) noexcept;
  [[noreturn]] void fail_recording(const char* what);
  // Each returns false if nothing is being recorded any more.
  bool record(Kernel& kernel, const Range& range);
  bool record(const Transfer& transfer, bool source_stays);
  void raise_faults();
  void raise_refusal();
  // Writes without a command if the host may: false if it may not.
  bool write_at_once(cl_mem target, uint64_t offset, const void* source, uint64_t bytes);
  void write_large(cl_mem target, uint64_t offset, const void* source, uint64_t bytes);
  // Memory for a copy; leave_staging() is to be called after the last of several, when all are on
  // the queue.
  void* staging(uint64_t bytes);
  void leave_staging();
  void enqueued_one(uint64_t bytes = 0);  // counts a command, and keeps the pace
  void check(cl_int code, const char* call);
  // Waits until all commands of the queue have finished.
  void finish(cl_command_queue queue);
  // Whether none of the stream's commands can be running any more, and settle(), which waits for
  // that. Under the stream's lock.
  bool is_settled() const { return completed_.load() == enqueued_.load() && !is_shared_; }
  void settle();
  void finish_all();  // queues of the stream, and notes that
  // Memory that the host may use itself when the stream is settled; null: by commands alone, as
  // also while they are traced.
  std::byte* host_address(cl_mem buffer, uint64_t offset);
  [[noreturn]] void raise_failure(cl_int code, const char* call);
  cl_command_queue profiling_queue();
  void poll_markers();
  // To be called first by every command: joins or leaves the profiler's session.
  void follow_profiler() {
    if (const uint32_t now = profiler::session(); now != session_) [[unlikely]]
      change_session(now);
  }
  void change_session(uint32_t session);
  // Where the next command's event is to be stored; nullptr while nothing is recorded.
  cl_event* traced(const char* category, const char* name, uint64_t bytes);

  Device& device_;
  const uint64_t id_;
  const uint32_t place_;
  bool is_shared_ = false;  // others have the queue's handle
  // Queue, trace and names of launches are also used by the launch thread, without the stream's
  // lock; Exclusive keeps that thread out.
  std::mutex mutex_;
  struct Objects;
  const std::unique_ptr<Objects> objects_;
  std::atomic<uint64_t> enqueued_{0};
  std::atomic<uint64_t> completed_{0};
  static constexpr size_t kRecent = 8;
  std::array<const char*, kRecent> recent_{};  // names of the last launches
  uint64_t launches_ = 0;
  uint64_t programs_ = 0;  // of the process, at the last launch
  uint32_t session_ = 0;   // the profiler's
  std::unique_ptr<StreamTrace> trace_;
  Rehearsal rehearsal_;
  Faults faults_;
  std::atomic<Faults*> faults_in_use_{&faults_};
  std::vector<std::shared_ptr<Faults>> replayed_faults_;  // of graphs, since the last wait
  std::atomic<bool> is_recording_{false};
  std::unique_ptr<GraphRecording> recording_;
  // The refusal of a command that was submitted after its call had returned; kept until it is
  // raised.
  struct Refusal {
    cl_int code = CL_SUCCESS;
    std::string call;
    std::exception_ptr error;  // instead of a code: a program that does not compile
  };
  Refusal refusal_;
  std::atomic<bool> has_refusal_{false};
  std::atomic<uint64_t> epoch_;
  Command at_once_{};            // for commands that are submitted at once; its memory is reused
  std::atomic<int> unbuilt_{0};  // commands that may have to wait for a program or a verdict
  std::unique_ptr<LaunchThread> launch_thread_;  // the last member, so that it ends first
};

struct WorkCounters {
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> copies{0};
  std::atomic<uint64_t> copied_bytes{0};
};
WorkCounters& work_counters();

}  // namespace ocltensor::opencl
