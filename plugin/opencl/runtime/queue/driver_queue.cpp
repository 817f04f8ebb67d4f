// Calls of the driver for a stream's commands, and a new queue where the old one has lost its work.
#include "driver_queue.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/caps.h"
#include "runtime/program/program.h"
#include "runtime/queue/launch_thread.h"

namespace ocltensor::opencl {
namespace {

cl::CommandQueue make_queue(Device& device, cl_command_queue_properties properties) {
  cl_int code = CL_SUCCESS;
  cl::CommandQueue queue(device.context(), device.handle(), properties, &code);
  check_cl(code, "clCreateCommandQueue");
  return queue;
}

}  // namespace

DriverQueue::DriverQueue(Device& device, uint64_t stream)
    : device_(device), stream_(stream), queue_(make_queue(device, 0)), staging_(device) {}

DriverQueue::~DriverQueue() {
  if (queue_() != nullptr) cl().clFinish(queue_());
  if (trace_) trace_->finish();
}

cl_int DriverQueue::enqueue(cl_kernel kernel, const char* name, const Range& range, cl_event* event,
                            std::string& call) {
  recent_.add(name);
  const size_t* local = range.local[0] == 0 ? nullptr : range.local.data();
  if (device_.caps().is_capped) [[unlikely]]
    if (const std::string beyond = beyond_caps(device_.caps(), device_.id(), kernel, range.local);
        !beyond.empty()) {
      call = fmt::format("clEnqueueNDRangeKernel ({}: {})", name, beyond);
      return CL_OUT_OF_RESOURCES;
    }
  cl_int code = cl().clEnqueueNDRangeKernel(queue_(), kernel, range.rank, nullptr,
                                            range.global.data(), local, 0, nullptr, event);
  if (code != CL_SUCCESS) [[unlikely]] {
    call = fmt::format("clEnqueueNDRangeKernel ({}{})", name,
                       code == CL_INVALID_WORK_GROUP_SIZE && local != nullptr
                           ? describe_group(device_.id(), kernel, range.local)
                           : std::string());
    return code;
  }
  if (device_.caps().slow_compiler)
    if (code = wait_after_new_program(name, call); code != CL_SUCCESS) [[unlikely]]
      return code;
  return keep_pace(0, call);
}

// Such a driver compiles again when a program's kernel is first launched, in a thread of its own.
// A process that ends meanwhile takes the compiler's tables from it: the crash is the driver's.
cl_int DriverQueue::wait_after_new_program(const char* name, std::string& call) {
  const uint64_t programs = build_counters().builds + build_counters().loads;
  if (std::exchange(programs_, programs) == programs) [[likely]]
    return CL_SUCCESS;
  const cl_int code = cl().clFinish(queue_());
  if (code != CL_SUCCESS) call = fmt::format("clFinish ({})", name);
  return code;
}

cl_int DriverQueue::enqueue(const Transfer& t, cl_event* event, std::string& call) {
  cl_int code = CL_SUCCESS;
  switch (t.kind) {
    case Transfer::Kind::Write:
      code = cl().clEnqueueWriteBuffer(queue_(), t.target, CL_FALSE, t.target_offset, t.bytes,
                                       t.memory, 0, nullptr, event);
      break;
    case Transfer::Kind::Copy:
      code = cl().clEnqueueCopyBuffer(queue_(), t.source, t.target, t.source_offset,
                                      t.target_offset, t.bytes, 0, nullptr, event);
      break;
    case Transfer::Kind::Fill:
      code = cl().clEnqueueFillBuffer(queue_(), t.target, t.pattern.data(), t.pattern_bytes,
                                      t.target_offset, t.bytes, 0, nullptr, event);
  }
  if (code != CL_SUCCESS) [[unlikely]] {
    call = texts_of(t.kind).call;
    return code;
  }
  return keep_pace(t.kind == Transfer::Kind::Write ? t.bytes : 0, call);
}

cl_int DriverQueue::keep_pace(uint64_t bytes, std::string& call) {
  const char* what = nullptr;
  const cl_int code = pace_.keep(queue_(), bytes, what);
  if (code != CL_SUCCESS) [[unlikely]]
    call = what;
  return code;
}

cl_int DriverQueue::flush(std::string& call) {
  const cl_int code = cl().clFlush(queue_());
  if (code != CL_SUCCESS) call = "clFlush";
  pace_.flushed();
  return code;
}

void DriverQueue::flush() {
  std::string call;
  const cl_int code = flush(call);
  check(code, call.c_str());
}

void DriverQueue::count(uint64_t bytes) {
  progress_.count();
  std::string call;
  const cl_int code = keep_pace(bytes, call);
  check(code, call.c_str());
}

cl::Event DriverQueue::marker(bool timing) {
  cl::Event event;
  check(cl().clEnqueueMarkerWithWaitList(queue_(), 0, nullptr, &event()),
        "clEnqueueMarkerWithWaitList");
  flush();
  return timing ? stamp(event()) : event;
}

// Only a profiling queue stamps its commands, and each launch on one costs several microseconds.
// So the stream keeps a plain queue; a command on a second, profiling queue waits for the point
// `reached` and is stamped. It writes 4 bytes, because NVIDIA's driver stamps markers with 0.
cl::Event DriverQueue::stamp(cl_event reached) {
  if (stamps_.written() == nullptr) {
    cl_int code = CL_SUCCESS;
    stamps_.written =
        cl::Buffer(device_.context(), CL_MEM_READ_WRITE, sizeof(cl_uint), nullptr, &code);
    check_cl(code, "clCreateBuffer");
  }
  if (stamps_.queue() == nullptr) stamps_.queue = make_queue(device_, CL_QUEUE_PROFILING_ENABLE);
  cl::Event stamped;
  constexpr cl_uint kZero = 0;
  check(cl().clEnqueueFillBuffer(stamps_.queue(), stamps_.written(), &kZero, sizeof kZero, 0,
                                 sizeof kZero, 1, &reached, &stamped()),
        "clEnqueueFillBuffer");
  check(cl().clFlush(stamps_.queue()), "clFlush");
  return stamped;
}

bool DriverQueue::mark_progress() {
  const uint64_t ticket = progress_.enqueued();
  cl::Event reached;
  if (cl().clEnqueueMarkerWithWaitList(queue_(), 0, nullptr, &reached()) != CL_SUCCESS)
    return false;
  cl().clFlush(queue_());
  pace_.flushed();
  progress_.mark(ticket, std::move(reached));
  return true;
}

void DriverQueue::finish(cl_command_queue queue) {
  if (device_.caps().finish_waits) [[likely]]
    return check(cl().clFinish(queue), "clFinish");
  cl::Event all;
  check(cl().clEnqueueMarkerWithWaitList(queue, 0, nullptr, &all()), "clEnqueueMarkerWithWaitList");
  check(all.wait(), "clWaitForEvents");
}

void DriverQueue::finish() {
  const uint64_t ticket = progress_.enqueued();
  finish(queue_());
  if (stamps_.queue() != nullptr) finish(stamps_.queue());
  pace_.forget();
  progress_.finish(ticket);
  LaunchThread::stop_all_at_exit_if_compiled();
}

void DriverQueue::settle() {
  if (!is_settled()) finish();
}

void* DriverQueue::staging(uint64_t bytes) {
  if (void* memory = staging_.take(bytes)) return memory;
  const char* call = nullptr;
  const cl_int code = staging_.next_chunk(queue_(), call);
  check(code, call);
  return staging_.take(bytes);
}

void DriverQueue::leave_staging() {
  const char* call = nullptr;
  const cl_int code = staging_.mark(queue_(), call);
  check(code, call);
}

void DriverQueue::check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) [[likely]]
    return;
  if (code == CL_OUT_OF_RESOURCES || code == CL_INVALID_COMMAND_QUEUE ||
      code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    raise_loss(code, call);
  check_cl(code, call);
}

std::string DriverQueue::Recent::text() const {
  std::string text;
  for (uint64_t i = 0; i < std::min<uint64_t>(count, kMost); ++i)
    text += (i ? ", " : "") + std::string(names[(count - 1 - i) % kMost]);
  return text;
}

void DriverQueue::raise_loss(cl_int code, const char* call) {
  const std::string names = recent_.text();
  // All queued work is lost. Work enqueued from now on must not be affected by it, nor by commands
  // that may still be running.
  cl().clFinish(queue_());
  staging_.finished();
  progress_.finish(progress_.enqueued());
  recent_.count = 0;
  pace_.forget();
  if (trace_) std::exchange(trace_, nullptr)->finish();
  session_ = 0;
  try {
    stamps_.queue = nullptr;
    queue_ = make_queue(device_, 0);
  } catch (const Error&) {  // the device is permanently gone: later calls will say so
  }
  raise_async(code, call,
              names.empty()
                  ? std::string("no kernel was running")
                  : fmt::format("work of stream {} was lost; the last kernels, newest first: {}",
                                stream_, names));
}

// Only a profiling queue stamps its commands, and every launch on one costs microseconds: the
// stream uses such a queue only while the profiler is on.
void DriverQueue::change_session(uint32_t session) {
  finish(queue_());
  pace_.forget();
  session_ = session;
  const bool was_traced = is_traced();
  if (was_traced) std::exchange(trace_, nullptr)->finish();
  try {
    if (was_traced) queue_ = make_queue(device_, 0);
    if (!profiler::is_recording(session)) return;
    cl::CommandQueue queue = make_queue(device_, CL_QUEUE_PROFILING_ENABLE);
    trace_ = std::make_unique<StreamTrace>(device_, stream_, queue());
    queue_ = std::move(queue);
  } catch (const Error& error) {  // running the commands matters more than recording them
    logging::warning("profiler", "stream {} of device {} is not recorded: {}", stream_,
                     device_.index(), error.what());
  }
}

void DriverQueue::collect_trace() {
  if (trace_) trace_->collect();
}

}  // namespace ocltensor::opencl
