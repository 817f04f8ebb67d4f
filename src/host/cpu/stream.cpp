// Streams and events: calls are synchronous, so a stream is only a handle, and an event only a time
// of the steady clock.
#include "stream.h"

#include <chrono>
#include <mutex>

#include "memory.h"
#include "ocltensor/error.h"

namespace ocltensor::cpu {
namespace {

using Clock = std::chrono::steady_clock;

struct Stream {
  int32_t priority = 0;
};
struct Event {
  bool timing = false;
  std::mutex mutex;
  bool recorded = false;
  Clock::time_point time;
};

Stream& the_default_stream() {
  static Stream stream;
  return stream;
}
tb_stream handle(Stream* s) { return reinterpret_cast<tb_stream>(s); }  // NOLINT: opaque
Event& event_of(tb_event e) {
  check(e != nullptr, "the event is NULL");
  return *reinterpret_cast<Event*>(e);  // NOLINT: opaque by contract
}

tb_status default_stream(int32_t device, tb_stream* stream, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    *stream = handle(&the_default_stream());
  });
}
tb_status create_stream(int32_t device, int32_t priority, tb_stream* stream, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    *stream = handle(new Stream{priority});
  });
}
tb_status destroy_stream(tb_stream stream, tb_error* error) {
  return guarded(error, [&] {
    check(stream != handle(&the_default_stream()), "the default stream cannot be destroyed");
    delete reinterpret_cast<Stream*>(stream);  // NOLINT
  });
}
tb_status device_of(tb_stream stream, int32_t* device, tb_error* error) {
  return guarded(error, [&] {
    check(stream != nullptr, "the stream is NULL");
    *device = 0;
  });
}
tb_status finished(tb_stream stream, tb_error* error) {
  return guarded(error, [&] { check(stream != nullptr, "the stream is NULL"); });
}
tb_status wait_event(tb_stream, tb_event event, tb_error* error) {
  return guarded(error, [&] { (void)event_of(event); });
}
tb_status begin_rehearsal(tb_stream, tb_error* error) {
  return guarded(error, [&] { unsupported(TB_REASON_ARGUMENT, "the CPU compiles nothing"); });
}
tb_status count_missing(tb_stream, uint32_t*, tb_error* error) {
  return begin_rehearsal(nullptr, error);
}

tb_status create_event(int32_t device, uint32_t flags, tb_event* event, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    auto* e = new Event;
    e->timing = (flags & TB_EVENT_TIMING) != 0;
    *event = reinterpret_cast<tb_event>(e);  // NOLINT
  });
}
tb_status destroy_event(tb_event event, tb_error*) {
  delete reinterpret_cast<Event*>(event);  // NOLINT
  return TB_OK;
}
tb_status record(tb_event event, tb_stream, tb_error* error) {
  return guarded(error, [&] {
    Event& e = event_of(event);
    const std::lock_guard lock(e.mutex);
    e.recorded = true;
    e.time = Clock::now();
  });
}
tb_status query_event(tb_event event, tb_error* error) {
  return guarded(error, [&]() -> tb_status {
    Event& e = event_of(event);
    const std::lock_guard lock(e.mutex);
    return e.recorded ? TB_OK : TB_NOT_READY;
  });
}
tb_status synchronize_event(tb_event event, tb_error* error) {
  return guarded(error, [&] { (void)event_of(event); });
}
tb_status elapsed(tb_event start, tb_event end, double* milliseconds, tb_error* error) {
  return guarded(error, [&] {
    Clock::time_point times[2];
    Event* events[2] = {&event_of(start), &event_of(end)};
    for (int i = 0; i < 2; ++i) {
      const std::lock_guard lock(events[i]->mutex);
      check(events[i]->timing, "elapsed_ms needs events that were created with timing");
      check(events[i]->recorded, "elapsed_ms needs events that were recorded");
      times[i] = events[i]->time;
    }
    *milliseconds = std::chrono::duration<double, std::milli>(times[1] - times[0]).count();
  });
}

}  // namespace

const tb_stream_api* stream_api() {
  static const tb_stream_api api = {
      .struct_size = sizeof(tb_stream_api),
      .default_stream = default_stream,
      .create = create_stream,
      .destroy = destroy_stream,
      .device = device_of,
      .synchronize = finished,
      .query = finished,
      .wait_event = wait_event,
      .begin_rehearsal = begin_rehearsal,
      .end_rehearsal = count_missing,
      .build_missing = count_missing,
  };
  return &api;
}

const tb_event_api* event_api() {
  static const tb_event_api api = {
      .struct_size = sizeof(tb_event_api),
      .create = create_event,
      .destroy = destroy_event,
      .record = record,
      .query = query_event,
      .synchronize = synchronize_event,
      .elapsed_ms = elapsed,
  };
  return &api;
}

}  // namespace ocltensor::cpu
