// Records, queries and times events.
#include "event.h"

#include <chrono>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {

namespace {

using Arrival = std::shared_ptr<std::atomic<cl_ulong>>;

void CL_CALLBACK note_arrival(cl_event, cl_int, void* data) {
  const std::unique_ptr<Arrival> arrival(static_cast<Arrival*>(data));
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  (*arrival)->store(
      static_cast<cl_ulong>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
  (*arrival)->notify_all();
}

Arrival await_arrival(cl_event event) {
  auto arrival = std::make_shared<std::atomic<cl_ulong>>(0);
  auto data = std::make_unique<Arrival>(arrival);
  check_cl(cl().clSetEventCallback(event, CL_COMPLETE, note_arrival, data.get()),
           "clSetEventCallback");
  (void)data.release();  // owned by the callback now
  return arrival;
}

}  // namespace

void Event::record(Stream& stream) {
  check(&stream.device() == &device_,
        "an event of device {} cannot be recorded on a stream of device {}", device_.index(),
        stream.device().index());
  Handle<cl_event> event = stream.marker(timing_);
  Arrival arrival;
  if (timing_ && !device_.caps().timestamps) arrival = await_arrival(event.get());
  std::lock_guard lock(mutex_);
  event_ = std::move(event);
  arrival_ = std::move(arrival);
}

Handle<cl_event> Event::retained() {
  check_process();
  std::lock_guard lock(mutex_);
  if (event_) check_cl(cl().clRetainEvent(event_.get()), "clRetainEvent");
  return Handle<cl_event>(event_.get());
}

bool Event::reached() {
  const Handle<cl_event> event = retained();
  if (!event) return false;
  cl_int status = CL_QUEUED;
  check_cl(cl().clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                               &status, nullptr),
           "clGetEventInfo");
  if (status < 0) raise_async(status, "an event", "work before the event failed");
  return status == CL_COMPLETE;
}

void Event::synchronize() {
  const Handle<cl_event> event = retained();
  if (!event) return;
  const cl_event waited = event.get();
  const cl_int code = cl().clWaitForEvents(1, &waited);
  if (code != CL_SUCCESS) raise_async(code, "clWaitForEvents", "work before the event failed");
}

void Event::make_wait(Stream& stream) {
  const Handle<cl_event> event = retained();
  if (!event) return;
  if (&stream.device() == &device_)
    stream.wait_event(event.get());
  else  // in another context: the host has to wait
    synchronize();
}

cl_ulong Event::timestamp() {
  const Handle<cl_event> event = retained();
  if (Arrival arrival = (std::lock_guard(mutex_), arrival_)) {
    arrival->wait(0);  // the callback may run a little after the event's waiters
    return arrival->load();
  }
  cl_ulong value = 0;
  check_cl(cl().clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof value, &value,
                                        nullptr),
           "clGetEventProfilingInfo");
  return value;
}

double Event::elapsed_ms(Event& start, Event& end) {
  if (!start.timing_ || !end.timing_)
    fail(TB_E_STATE, "elapsed time needs two events that were created with timing enabled");
  check(&start.device_ == &end.device_, "elapsed time needs two events of one device");
  if (!start.retained() || !end.retained())
    fail(TB_E_STATE, "both events must be recorded before the time between them can be told");
  start.synchronize();
  end.synchronize();
  return (static_cast<double>(end.timestamp()) - static_cast<double>(start.timestamp())) * 1e-6;
}

}  // namespace ocltensor::opencl
