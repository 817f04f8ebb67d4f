// Waits for enqueued work, reads results, and restores the stream after a failure.
#include "stream.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/memory/memory.h"
#include "runtime/observe/call_ledger.h"
#include "runtime/observe/trace.h"
#include "runtime/queue/graph_recording.h"
#include "runtime/queue/proving.h"
#include "runtime/queue/stream_exclusive.h"

namespace ocltensor::opencl {
namespace {

Handle<cl_command_queue> make_queue(Device& device, cl_command_queue_properties properties) {
  cl_int code = CL_SUCCESS;
  Handle<cl_command_queue> queue(
      cl().clCreateCommandQueue(device.context(), device.id(), properties, &code));
  check_cl(code, "clCreateCommandQueue");
  return queue;
}

// Epochs of streams never repeat: a kernel that a former stream used must not rely on the arguments
// that it remembers.
uint64_t first_epoch() {
  static std::atomic<uint64_t> streams{0};
  return ++streams << 32;
}

}  // namespace

WorkCounters& work_counters() {
  static WorkCounters counters;
  return counters;
}

Stream::Stream(Device& device, uint64_t id, uint32_t place)
    : device_(device),
      id_(id),
      place_(place),
      queue_(make_queue(device, 0)),
      staging_(device),
      faults_(device),
      epoch_(first_epoch()) {
  if (device.caps().deferred_builds)
    launch_thread_ = std::make_unique<LaunchThread>([this](Command& c) { submit(c); },
                                                    device.caps().launch_thread);
}

Stream::~Stream() {
  launch_thread_.reset();
  if (queue_) cl().clFinish(queue_.get());
  if (trace_) trace_->finish();
}

// Only a profiling queue stamps its commands, and every launch on one costs microseconds: the
// stream uses such a queue only while the profiler is on.
void Stream::change_session(uint32_t session) {
  finish(queue_.get());
  pace_.forget();
  session_ = session;
  const bool traced = trace_ != nullptr;
  if (traced) std::exchange(trace_, nullptr)->finish();
  try {
    if (traced) queue_ = make_queue(device_, 0);
    if (!profiler::is_recording(session)) return;
    Handle<cl_command_queue> queue = make_queue(device_, CL_QUEUE_PROFILING_ENABLE);
    trace_ = std::make_unique<StreamTrace>(device_, id_, queue.get());
    queue_ = std::move(queue);
  } catch (const Error& error) {  // running the commands matters more than recording them
    logging::warning("profiler", "stream {} of device {} is not recorded: {}", id_, device_.index(),
                     error.what());
  }
}

void Stream::end_trace() {
  check_process();
  const std::lock_guard lock(mutex_);
  const auto launches = hold_launches();
  follow_profiler();
}

void Stream::collect_trace() {
  check_process();
  const std::lock_guard lock(mutex_);
  const auto launches = hold_launches();
  if (trace_) trace_->collect();
}

void Stream::finish_operator() {
  if (profiler::listens(profiler::kTrace)) {
    tb_memory_stats stats{};
    device_.memory().pool().fill_stats(stats);
    profiler::trace::add({device_.index(), profiler::now(),
                          static_cast<uint64_t>(stats.allocated_bytes.current),
                          static_cast<uint64_t>(stats.reserved_bytes.current)});
    if (profiler::trace::waits() && !is_recording()) synchronize();
  }
  if (profiler::CallLedger::waits_for_times()) collect_trace();
}

void Stream::check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) [[likely]]
    return;
  if (code == CL_OUT_OF_RESOURCES || code == CL_INVALID_COMMAND_QUEUE ||
      code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    raise_failure(code, call);
  check_cl(code, call);
}

void Stream::raise_failure(cl_int code, const char* call) {
  std::string names;
  for (uint64_t i = 0; i < std::min<uint64_t>(launches_, kRecent); ++i)
    names += (i ? ", " : "") + std::string(recent_[(launches_ - 1 - i) % kRecent]);
  // All queued work is lost. Work enqueued from now on must not be affected by it, nor by commands
  // that may still be running.
  cl().clFinish(queue_.get());
  staging_.finished();
  markers_.clear();
  completed_ = enqueued_.load();
  launches_ = 0;
  pace_.forget();
  if (trace_) std::exchange(trace_, nullptr)->finish();
  session_ = 0;
  try {
    profiling_queue_.reset(nullptr);
    queue_ = make_queue(device_, 0);
  } catch (const Error&) {  // the device is permanently gone: later calls will say so
  }
  raise_async(code, call,
              names.empty()
                  ? std::string("no kernel was running")
                  : fmt::format("work of stream {} was lost; the last kernels, newest first: {}",
                                id_, names));
}

void Stream::read(void* target, cl_mem source, uint64_t offset, uint64_t bytes, bool asynchronous) {
  check_process();
  forbid_recording("reading results on the host");
  rehearsal_.check_results();
  const Exclusive lock(*this);
  ++work_counters().copies;
  work_counters().copied_bytes += bytes;
  if (const std::byte* from = asynchronous ? nullptr : host_address(source, offset)) {
    settle();
    raise_faults();
    std::memcpy(target, from, bytes);
    return;
  }
  if (asynchronous || device_.caps().unified_memory || bytes <= Staging::kSmall) {
    check(
        cl().clEnqueueReadBuffer(queue_.get(), source, asynchronous ? CL_FALSE : CL_TRUE, offset,
                                 bytes, target, 0, nullptr, traced("copy", "copy to host", bytes)),
        "clEnqueueReadBuffer");
    enqueued_one(asynchronous ? bytes : 0);
    if (!asynchronous) raise_faults();
    return;
  }
  // Reads through page-locked chunks: the next chunk is transferred while this one is copied out.
  struct Pending {
    void* staged;
    uint64_t at, count;
    Handle<cl_event> done;
  };
  std::deque<Pending> pending;
  auto* to = static_cast<unsigned char*>(target);
  const auto drain = [&] {
    Pending& p = pending.front();
    const cl_event event = p.done.get();
    check(cl().clWaitForEvents(1, &event), "clWaitForEvents");
    std::memcpy(to + p.at, p.staged, p.count);
    pending.pop_front();
  };
  constexpr uint64_t kPart = Staging::kChunkBytes / 2;
  for (uint64_t at = 0; at < bytes; at += kPart) {
    if (pending.size() == 3) drain();
    Pending p{nullptr, at, std::min(bytes - at, kPart), {}};
    p.staged = staging(p.count);
    check(cl().clEnqueueReadBuffer(queue_.get(), source, CL_FALSE, offset + at, p.count, p.staged,
                                   0, nullptr, p.done.out()),
          "clEnqueueReadBuffer");
    if (cl_event* event = traced("copy", "copy to host", p.count)) {
      check(cl().clRetainEvent(p.done.get()), "clRetainEvent");
      *event = p.done.get();
    }
    enqueued_one();
    check(cl().clFlush(queue_.get()), "clFlush");
    pending.push_back(std::move(p));
  }
  while (!pending.empty()) drain();
  leave_staging();
  raise_faults();
}

void* Stream::map(cl_mem buffer, uint64_t offset, uint64_t bytes, cl_map_flags flags) {
  check_process();
  forbid_recording("mapping memory");
  rehearsal_.check_results();
  const Exclusive lock(*this);
  if (std::byte* memory = device_.memory().host_address(buffer)) {
    settle();
    raise_faults();
    return memory + offset;
  }
  cl_int code = CL_SUCCESS;
  void* memory = cl().clEnqueueMapBuffer(queue_.get(), buffer, CL_TRUE, flags, offset, bytes, 0,
                                         nullptr, nullptr, &code);
  check(code, "clEnqueueMapBuffer");
  try {
    raise_faults();
  } catch (...) {
    (void)cl().clEnqueueUnmapMemObject(queue_.get(), buffer, memory, 0, nullptr, nullptr);
    throw;
  }
  return memory;
}

void Stream::unmap(cl_mem buffer, void* memory) {
  check_process();
  forbid_recording("unmapping memory");
  const Exclusive lock(*this);
  if (device_.memory().host_address(buffer) != nullptr) return;
  check(cl().clEnqueueUnmapMemObject(queue_.get(), buffer, memory, 0, nullptr, nullptr),
        "clEnqueueUnmapMemObject");
  enqueued_one();
}

void Stream::wait_event(cl_event event) {
  check_process();
  forbid_recording("waiting for an event or another stream");
  const Exclusive lock(*this);
  check(cl().clEnqueueBarrierWithWaitList(queue_.get(), 1, &event, nullptr),
        "clEnqueueBarrierWithWaitList");
  enqueued_one();
}

cl_command_queue Stream::profiling_queue() {
  if (!stamp_) {
    cl_int code = CL_SUCCESS;
    stamp_.reset(
        cl().clCreateBuffer(device_.context(), CL_MEM_READ_WRITE, sizeof(cl_uint), nullptr, &code));
    check_cl(code, "clCreateBuffer");
  }
  if (!profiling_queue_) profiling_queue_ = make_queue(device_, CL_QUEUE_PROFILING_ENABLE);
  return profiling_queue_.get();
}

Handle<cl_event> Stream::marker(bool timing) {
  check_process();
  forbid_recording("recording an event");
  const std::lock_guard lock(mutex_);
  const auto launches = hold_launches();
  // Destructors record events, too, and ignore errors, so the error is kept for the next command.
  if (has_refusal_) [[unlikely]]
    check_cl(refusal_.code, refusal_.call.c_str());
  follow_profiler();
  Handle<cl_event> event;
  check(cl().clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, event.out()),
        "clEnqueueMarkerWithWaitList");
  check(cl().clFlush(queue_.get()), "clFlush");
  pace_.flushed();
  if (!timing) return event;
  // Only a profiling queue stamps its commands, and each launch on one costs several microseconds.
  // So the stream keeps a plain queue; a command on a second, profiling queue waits for this point
  // and is stamped. It writes 4 bytes, because NVIDIA's driver stamps markers with 0.
  Handle<cl_event> stamped;
  const cl_event reached = event.get();
  const cl_command_queue profiling = profiling_queue();
  constexpr cl_uint kZero = 0;
  check(cl().clEnqueueFillBuffer(profiling, stamp_.get(), &kZero, sizeof kZero, 0, sizeof kZero, 1,
                                 &reached, stamped.out()),
        "clEnqueueFillBuffer");
  check(cl().clFlush(profiling_queue()), "clFlush");
  return stamped;
}

void Stream::synchronize(bool raises) {
  check_process();
  if (raises) forbid_recording("synchronisation");
  const std::lock_guard lock(mutex_);
  const auto launches = hold_launches();
  finish_all();
  if (!raises) return;
  if (has_refusal_) [[unlikely]]
    raise_refusal();
  raise_faults();
}

void Stream::finish_all() {
  const uint64_t ticket = enqueued_.load();
  finish(queue_.get());
  if (profiling_queue_) finish(profiling_queue_.get());  // events' stamps
  pace_.forget();
  completed_ = std::max(completed_.load(), ticket);
  markers_.clear();
  LaunchThread::stop_all_at_exit_if_compiled();
}

void Stream::settle() {
  if (!is_settled()) finish_all();
}

std::byte* Stream::host_address(cl_mem buffer, uint64_t offset) {
  if (trace_ != nullptr) return nullptr;
  std::byte* memory = device_.memory().host_address(buffer);
  return memory == nullptr ? nullptr : memory + offset;
}

void Stream::finish(cl_command_queue queue) {
  if (device_.caps().finish_waits) [[likely]]
    return check(cl().clFinish(queue), "clFinish");
  Handle<cl_event> all;
  check(cl().clEnqueueMarkerWithWaitList(queue, 0, nullptr, all.out()),
        "clEnqueueMarkerWithWaitList");
  const cl_event waited = all.get();
  check(cl().clWaitForEvents(1, &waited), "clWaitForEvents");
}

bool Stream::idle() { return passed(enqueued()); }

cl_command_queue Stream::queue() {
  forbid_recording("use of the native queue");
  const Exclusive lock(*this);
  is_shared_ = true;
  return queue_.get();
}

void Stream::poll_markers() {
  while (!markers_.empty()) {
    cl_int status = CL_QUEUED;
    const cl_int code =
        cl().clGetEventInfo(markers_.front().second.get(), CL_EVENT_COMMAND_EXECUTION_STATUS,
                            sizeof status, &status, nullptr);
    if (code == CL_SUCCESS && status > CL_COMPLETE) return;
    completed_ =
        std::max(completed_.load(), markers_.front().first);  // failed work counts as finished
    markers_.pop_front();
  }
}

bool Stream::passed(uint64_t ticket) {
  check_process();
  if (ticket <= completed_.load(std::memory_order_acquire)) return true;
  const std::unique_lock lock = lock_unless_unbuilt();
  if (!lock) return false;
  poll_markers();
  if (ticket <= completed_.load()) return true;
  if (markers_.empty() || markers_.back().first < ticket) {
    const auto launches = hold_launches();
    const uint64_t covered = enqueued_.load();
    Handle<cl_event> event;
    if (cl().clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, event.out()) != CL_SUCCESS)
      return false;
    cl().clFlush(queue_.get());
    pace_.flushed();
    markers_.emplace_back(covered, std::move(event));
    poll_markers();
  }
  return ticket <= completed_.load();
}

void Stream::wait(uint64_t ticket) {
  if (!passed(ticket) && !proving::is_testing()) synchronize(false);
}

}  // namespace ocltensor::opencl
