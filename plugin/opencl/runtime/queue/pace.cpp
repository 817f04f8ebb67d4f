// Flushes the queue, marks it, and waits for the oldest mark.
#include "pace.h"

#include <utility>

#include "runtime/observe/profiler.h"

namespace ocltensor::opencl {
namespace {

constexpr uint64_t kFlushEvery = 32;  // commands

}  // namespace

cl_int Pace::keep(cl_command_queue queue, uint64_t bytes, const char*& call) {
  const bool wants_mark = run_ahead_.add(bytes);
  cl_int code = CL_SUCCESS;
  if (++unflushed_ >= kFlushEvery || wants_mark) code = flush(queue, call);
  if (!wants_mark || code != CL_SUCCESS) [[likely]]
    return code;
  code = mark(queue, call);
  if (code == CL_SUCCESS) code = hear_of_reached(call);
  if (code == CL_SUCCESS && run_ahead_.is_too_far()) code = wait_while_too_far(call);
  return code;
}

void Pace::forget() {
  marks_.clear();
  run_ahead_.clear();
  unflushed_ = 0;
}

cl_int Pace::flush(cl_command_queue queue, const char*& call) {
  unflushed_ = 0;
  call = "clFlush";
  return cl().clFlush(queue);
}

cl_int Pace::mark(cl_command_queue queue, const char*& call) {
  call = "clEnqueueMarkerWithWaitList";
  cl::Event mark;
  const cl_int code = cl().clEnqueueMarkerWithWaitList(queue, 0, nullptr, &mark());
  if (code != CL_SUCCESS) return code;
  marks_.push_back(std::move(mark));
  run_ahead_.mark(RunAhead::Clock::now());
  return CL_SUCCESS;
}

cl_int Pace::hear_of_reached(const char*& call) {
  call = "clGetEventInfo";
  while (!marks_.empty()) {
    cl_int status = CL_QUEUED;
    const cl_int code = cl().clGetEventInfo(marks_.front()(), CL_EVENT_COMMAND_EXECUTION_STATUS,
                                            sizeof status, &status, nullptr);
    if (code != CL_SUCCESS) return code;
    if (status > CL_COMPLETE) break;
    marks_.pop_front();
    run_ahead_.reach_oldest(RunAhead::Clock::now(), false);
  }
  return CL_SUCCESS;
}

cl_int Pace::wait_while_too_far(const char*& call) {
  const profiler::HostCall traced("wait", "the host is far ahead of the device");
  call = "clWaitForEvents";
  while (run_ahead_.is_too_far()) {
    const cl_event oldest = marks_.front()();
    if (const cl_int code = cl().clWaitForEvents(1, &oldest); code != CL_SUCCESS) return code;
    marks_.pop_front();
    run_ahead_.reach_oldest(RunAhead::Clock::now(), true);
  }
  return CL_SUCCESS;
}

}  // namespace ocltensor::opencl
