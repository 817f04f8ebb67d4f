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

cl::CommandQueue make_queue(Device& device, cl_command_queue_properties properties) {
  cl_int code = CL_SUCCESS;
  cl::CommandQueue queue(device.context(), device.handle(), properties, &code);
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
      objects_(new Objects{make_queue(device, 0), {}, {}, {}, {}, Staging(device)}),
      faults_(device),
      epoch_(first_epoch()) {
  if (device.caps().deferred_builds)
    launch_thread_ = std::make_unique<LaunchThread>([this](Command& c) { submit(c); },
                                                    device.caps().launch_thread);
}

Stream::~Stream() {
  launch_thread_.reset();
  if (objects_->queue() != nullptr) cl().clFinish(objects_->queue());
  if (trace_) trace_->finish();
}

// Only a profiling queue stamps its commands, and every launch on one costs microseconds: the
// stream uses such a queue only while the profiler is on.
void Stream::change_session(uint32_t session) {
  finish(objects_->queue());
  objects_->pace.forget();
  session_ = session;
  const bool traced = trace_ != nullptr;
  if (traced) std::exchange(trace_, nullptr)->finish();
  try {
    if (traced) objects_->queue = make_queue(device_, 0);
    if (!profiler::is_recording(session)) return;
    cl::CommandQueue queue = make_queue(device_, CL_QUEUE_PROFILING_ENABLE);
    trace_ = std::make_unique<StreamTrace>(device_, id_, queue());
    objects_->queue = std::move(queue);
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
  cl().clFinish(objects_->queue());
  objects_->staging.finished();
  objects_->markers.clear();
  completed_ = enqueued_.load();
  launches_ = 0;
  objects_->pace.forget();
  if (trace_) std::exchange(trace_, nullptr)->finish();
  session_ = 0;
  try {
    objects_->profiling_queue = nullptr;
    objects_->queue = make_queue(device_, 0);
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
    check(cl().clEnqueueReadBuffer(objects_->queue(), source, asynchronous ? CL_FALSE : CL_TRUE,
                                   offset, bytes, target, 0, nullptr,
                                   traced("copy", "copy to host", bytes)),
          "clEnqueueReadBuffer");
    enqueued_one(asynchronous ? bytes : 0);
    if (!asynchronous) raise_faults();
    return;
  }
  // Reads through page-locked chunks: the next chunk is transferred while this one is copied out.
  struct Pending {
    void* staged;
    uint64_t at, count;
    cl::Event done;
  };
  std::deque<Pending> pending;
  auto* to = static_cast<unsigned char*>(target);
  const auto drain = [&] {
    Pending& p = pending.front();
    check(p.done.wait(), "clWaitForEvents");
    std::memcpy(to + p.at, p.staged, p.count);
    pending.pop_front();
  };
  constexpr uint64_t kPart = Staging::kChunkBytes / 2;
  for (uint64_t at = 0; at < bytes; at += kPart) {
    if (pending.size() == 3) drain();
    Pending p{nullptr, at, std::min(bytes - at, kPart), {}};
    p.staged = staging(p.count);
    check(cl().clEnqueueReadBuffer(objects_->queue(), source, CL_FALSE, offset + at, p.count,
                                   p.staged, 0, nullptr, &p.done()),
          "clEnqueueReadBuffer");
    if (cl_event* event = traced("copy", "copy to host", p.count)) {
      check(add_reference(p.done()), "a reference to an event");
      *event = p.done();
    }
    enqueued_one();
    check(cl().clFlush(objects_->queue()), "clFlush");
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
  void* memory = cl().clEnqueueMapBuffer(objects_->queue(), buffer, CL_TRUE, flags, offset, bytes,
                                         0, nullptr, nullptr, &code);
  check(code, "clEnqueueMapBuffer");
  try {
    raise_faults();
  } catch (...) {
    (void)cl().clEnqueueUnmapMemObject(objects_->queue(), buffer, memory, 0, nullptr, nullptr);
    throw;
  }
  return memory;
}

void Stream::unmap(cl_mem buffer, void* memory) {
  check_process();
  forbid_recording("unmapping memory");
  const Exclusive lock(*this);
  if (device_.memory().host_address(buffer) != nullptr) return;
  check(cl().clEnqueueUnmapMemObject(objects_->queue(), buffer, memory, 0, nullptr, nullptr),
        "clEnqueueUnmapMemObject");
  enqueued_one();
}

void Stream::wait_event(cl_event event) {
  check_process();
  forbid_recording("waiting for an event or another stream");
  const Exclusive lock(*this);
  check(cl().clEnqueueBarrierWithWaitList(objects_->queue(), 1, &event, nullptr),
        "clEnqueueBarrierWithWaitList");
  enqueued_one();
}

cl_command_queue Stream::profiling_queue() {
  if (objects_->stamp() == nullptr) {
    cl_int code = CL_SUCCESS;
    objects_->stamp =
        cl::Buffer(device_.context(), CL_MEM_READ_WRITE, sizeof(cl_uint), nullptr, &code);
    check_cl(code, "clCreateBuffer");
  }
  if (objects_->profiling_queue() == nullptr)
    objects_->profiling_queue = make_queue(device_, CL_QUEUE_PROFILING_ENABLE);
  return objects_->profiling_queue();
}

cl::Event Stream::marker(bool timing) {
  check_process();
  forbid_recording("recording an event");
  const std::lock_guard lock(mutex_);
  const auto launches = hold_launches();
  // Destructors record events, too, and ignore errors, so the error is kept for the next command.
  if (has_refusal_) [[unlikely]]
    check_cl(refusal_.code, refusal_.call.c_str());
  follow_profiler();
  cl::Event event;
  check(cl().clEnqueueMarkerWithWaitList(objects_->queue(), 0, nullptr, &event()),
        "clEnqueueMarkerWithWaitList");
  check(cl().clFlush(objects_->queue()), "clFlush");
  objects_->pace.flushed();
  if (!timing) return event;
  // Only a profiling queue stamps its commands, and each launch on one costs several microseconds.
  // So the stream keeps a plain queue; a command on a second, profiling queue waits for this point
  // and is stamped. It writes 4 bytes, because NVIDIA's driver stamps markers with 0.
  cl::Event stamped;
  const cl_event reached = event();
  const cl_command_queue profiling = profiling_queue();
  constexpr cl_uint kZero = 0;
  check(cl().clEnqueueFillBuffer(profiling, objects_->stamp(), &kZero, sizeof kZero, 0,
                                 sizeof kZero, 1, &reached, &stamped()),
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
  finish(objects_->queue());
  if (objects_->profiling_queue() != nullptr)
    finish(objects_->profiling_queue());  // events' stamps
  objects_->pace.forget();
  completed_ = std::max(completed_.load(), ticket);
  objects_->markers.clear();
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
  cl::Event all;
  check(cl().clEnqueueMarkerWithWaitList(queue, 0, nullptr, &all()), "clEnqueueMarkerWithWaitList");
  check(all.wait(), "clWaitForEvents");
}

bool Stream::idle() { return passed(enqueued()); }

cl_command_queue Stream::queue() {
  forbid_recording("use of the native queue");
  const Exclusive lock(*this);
  is_shared_ = true;
  return objects_->queue();
}

void Stream::poll_markers() {
  while (!objects_->markers.empty()) {
    cl_int status = CL_QUEUED;
    const cl_int code =
        cl().clGetEventInfo(objects_->markers.front().second(), CL_EVENT_COMMAND_EXECUTION_STATUS,
                            sizeof status, &status, nullptr);
    if (code == CL_SUCCESS && status > CL_COMPLETE) return;
    completed_ = std::max(completed_.load(),
                          objects_->markers.front().first);  // failed work counts as finished
    objects_->markers.pop_front();
  }
}

bool Stream::passed(uint64_t ticket) {
  check_process();
  if (ticket <= completed_.load(std::memory_order_acquire)) return true;
  const std::unique_lock lock = lock_unless_unbuilt();
  if (!lock) return false;
  poll_markers();
  if (ticket <= completed_.load()) return true;
  if (objects_->markers.empty() || objects_->markers.back().first < ticket) {
    const auto launches = hold_launches();
    const uint64_t covered = enqueued_.load();
    cl::Event event;
    if (cl().clEnqueueMarkerWithWaitList(objects_->queue(), 0, nullptr, &event()) != CL_SUCCESS)
      return false;
    cl().clFlush(objects_->queue());
    objects_->pace.flushed();
    objects_->markers.emplace_back(covered, std::move(event));
    poll_markers();
  }
  return ticket <= completed_.load();
}

void Stream::wait(uint64_t ticket) {
  if (!passed(ticket) && !proving::is_testing()) synchronize(false);
}

}  // namespace ocltensor::opencl
