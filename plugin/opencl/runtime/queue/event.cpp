// Records, queries and times events.
#include "event.h"

#include <algorithm>
#include <chrono>
#include <utility>

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

cl_int await(const cl::Event& event) {
  if (const cl_int code = event.wait(); code != CL_SUCCESS) return code;
  cl_int status = CL_COMPLETE;
  const cl_int code = event.getInfo(CL_EVENT_COMMAND_EXECUTION_STATUS, &status);
  return code != CL_SUCCESS ? code : std::min(status, CL_COMPLETE);
}

void Event::record(Stream& stream) {
  check(&stream.device() == &device_,
        "an event of device {} cannot be recorded on a stream of device {}", device_.index(),
        stream.device().index());
  cl::Event event = stream.marker(timing_);
  Arrival arrival;
  if (timing_ && !device_.caps().timestamps) arrival = await_arrival(event());
  std::lock_guard lock(mutex_);
  event_ = std::move(event);
  arrival_ = std::move(arrival);
}

cl::Event Event::retained() {
  check_process();
  std::lock_guard lock(mutex_);
  if (event_() != nullptr) check_cl(add_reference(event_()), "a reference to an event");
  return cl::Event(event_());
}

bool Event::reached() {
  const cl::Event event = retained();
  if (event() == nullptr) return false;
  cl_int status = CL_QUEUED;
  check_cl(event.getInfo(CL_EVENT_COMMAND_EXECUTION_STATUS, &status), "clGetEventInfo");
  if (status < 0) raise_async(status, "an event", "work before the event failed");
  return status == CL_COMPLETE;
}

void Event::synchronize() {
  const cl::Event event = retained();
  if (event() == nullptr) return;
  if (const cl_int code = await(event); code != CL_SUCCESS)
    raise_async(code, "clWaitForEvents", "work before the event failed");
}

void Event::make_wait(Stream& stream) {
  cl::Event event = retained();
  if (event() == nullptr) return;
  if (&stream.device() == &device_)
    stream.wait_event(event());
  else
    stream.wait_elsewhere(std::move(event));
}

cl_ulong Event::timestamp() {
  const cl::Event event = retained();
  if (Arrival arrival = (std::lock_guard(mutex_), arrival_)) {
    arrival->wait(0);  // the callback may run a little after the event's waiters
    return arrival->load();
  }
  cl_ulong value = 0;
  check_cl(event.getProfilingInfo(CL_PROFILING_COMMAND_END, &value), "clGetEventProfilingInfo");
  return value;
}

double Event::elapsed_ms(Event& start, Event& end) {
  if (!start.timing_ || !end.timing_)
    fail(TB_E_STATE, "elapsed time needs two events that were created with timing enabled");
  check(&start.device_ == &end.device_, "elapsed time needs two events of one device");
  if (start.retained()() == nullptr || end.retained()() == nullptr)
    fail(TB_E_STATE, "both events must be recorded before the time between them can be told");
  start.synchronize();
  end.synchronize();
  return (static_cast<double>(end.timestamp()) - static_cast<double>(start.timestamp())) * 1e-6;
}

}  // namespace ocltensor::opencl
