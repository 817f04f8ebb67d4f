// Streams: in-order command queues of one device, with a count of enqueued work by which the reuse
// of memory is ordered.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/driver/opencl.h"
#include "runtime/driver/process.h"
#include "runtime/observe/stream_observer.h"
#include "runtime/program/rehearsal.h"
#include "runtime/queue/faults.h"

namespace ocltensor::opencl {

class CommandQueue;
class Device;
class ReadyQueue;

// Thread-safe. A failure of enqueued work is kept with the names of the kernels that may have
// caused it and is raised, once, at the next synchronisation; the queue is then replaced by a new
// one. Invalid values that kernels met (Faults) are raised there, too, without further effects.
// With a launch thread, a command that the driver refuses is raised by the stream's next call
// instead of its own, and commands in between are dropped.
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
  // Commands from now on come after an event of this device; or of another one, for which the
  // launch thread waits, and the host where there is none.
  void wait_event(cl_event event);
  void wait_elsewhere(cl::Event event);

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

  // Of the stream's queue: see CommandQueue.
  bool has_launch_thread() const;
  uint64_t epoch() const;
  void submit_launches();
  bool try_submit_launches();
  void stop_launch_thread();

  // Progress, for the memory pool (see StreamClock). These waits do not raise errors of earlier
  // work, which are kept for the user's own waits. passed() never waits for a program, a proof or
  // another device: it may then be false for a ticket that has passed. Nor does wait(), if the
  // thread tests a kernel: the stream may wait for the verdict.
  uint64_t enqueued() const;
  bool passed(uint64_t ticket);
  void wait(uint64_t ticket);

  // Those of the graph while one is recorded.
  Faults& faults() { return faults_.current(); }

  // A rehearsal, whose missing programs stay in it when it has ended: begin() and end() of it are
  // called by these.
  Rehearsal& rehearsal() { return rehearsal_; }
  void begin_rehearsal();
  uint32_t end_rehearsal();

  // A graph's recording, which takes launches, writes, copies and fills, and refuses all else.
  // Their launches report to `faults`.
  bool is_recording() const { return watch_.load(std::memory_order_relaxed) == Watch::Recording; }
  void begin_recording(std::unique_ptr<StreamObserver> recording, Faults& faults);
  std::unique_ptr<StreamObserver> end_recording();  // null: it did not record
  // Names the operator that has just failed the recording.
  void name_failure(const std::string& operation);
  // Keeps a buffer as long as the recording's graph; does nothing without a recording.
  void keep_recorded(cl::Buffer& buffer);

  // What every call passes that gives no command: throws TB_E_STATE where an observer refuses it.
  void check(const HostUse& use);
  // The same, with exclusive use of the queue, in which all commands are by then.
  ReadyQueue use(const HostUse& use);
  // For who has the queue: commands that it enqueued may report to a graph's record.
  void expect(std::shared_ptr<Faults> faults) { faults_.expect(std::move(faults)); }

 private:
  enum class Watch : uint8_t { None, Rehearsal, Recording };

  // What every command passes first: whether it is not to be enqueued, since a dry run of the
  // thread drops it, or an observer takes it.
  template <typename... Parts>
  bool is_taken(Parts&&... parts) {
    check_process();
    if (DryRun::is_on()) [[unlikely]]
      return true;
    return watch_.load(std::memory_order_relaxed) != Watch::None && give_to_observer(parts...);
  }
  bool give_to_observer(Kernel& kernel, const Range& range);
  bool give_to_observer(const Transfer& transfer, bool source_stays);
  void issue(const Transfer& transfer);
  void enqueue(const Transfer& transfer, bool source_stays);
  StreamObserver* observer();  // under the stream's lock; null: none

  Device& device_;
  const uint64_t id_;
  const uint32_t place_;
  const std::unique_ptr<CommandQueue> commands_;
  StreamFaults faults_;
  Rehearsal rehearsal_;
  std::unique_ptr<StreamObserver> recording_;  // guarded by the stream's lock
  std::atomic<Watch> watch_{Watch::None};      // the observer; changes under the stream's lock
};

struct WorkCounters {
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> copies{0};
  std::atomic<uint64_t> copied_bytes{0};
};
WorkCounters& work_counters();

}  // namespace ocltensor::opencl
