// Devices, streams and events at the C boundary.
#include <algorithm>
#include <cstring>

#include "entry.h"
#include "handles.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/event.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {
namespace {

template <size_t N>
void copy_text(char (&target)[N], const std::string& text) {
  const size_t length = std::min(N - 1, text.size());
  std::memcpy(target, text.data(), length);
  target[length] = 0;
}

tb_status device_count(int32_t* count, tb_error* error) {
  return guarded(error, [&] {
    required(count, "count") = 0;
    *count = static_cast<int32_t>(device_list().devices.size());
  });
}

uint64_t device_report(char* text, uint64_t capacity) {
  std::string report;
  ErrorBuffer buffer;
  if (guarded(buffer.get(), [&] { report = device_list().report; }) != TB_OK)
    report = buffer.text();
  if (text != nullptr && capacity > 0) {
    const size_t length = std::min<size_t>(capacity - 1, report.size());
    std::memcpy(text, report.data(), length);
    text[length] = 0;
  }
  return report.size();
}

tb_status device_properties(int32_t index, tb_device_properties* properties, tb_error* error) {
  return guarded(error, [&] {
    Device& d = device(index);
    const Capabilities& c = d.caps();
    tb_device_properties p{};
    p.index = index;
    p.kind = c.type & CL_DEVICE_TYPE_GPU   ? TB_DEVICE_GPU
             : c.type & CL_DEVICE_TYPE_CPU ? TB_DEVICE_CPU
                                           : TB_DEVICE_ACCELERATOR;
    const auto set = [&](bool has, uint32_t feature) { p.features |= has ? feature : 0u; };
    set(c.fp64, TB_FEATURE_FP64);
    set(c.fp16_arithmetic, TB_FEATURE_FP16_ARITHMETIC);
    set(c.unified_memory, TB_FEATURE_UNIFIED_MEMORY);
    set(c.int64_atomics, TB_FEATURE_INT64_ATOMICS);
    copy_text(p.name, c.name);
    copy_text(p.vendor, c.vendor);
    copy_text(p.platform, c.platform);
    copy_text(p.driver_version, c.driver_version);
    copy_text(p.language_version, c.language_version);
    p.global_memory = c.global_memory;
    p.largest_allocation = c.largest_allocation;
    p.local_memory = c.local_memory;
    p.recommended_memory = recommended_memory(c);
    p.compute_units = c.compute_units;
    p.max_work_group_size = c.max_work_group_size;
    p.clock_mhz = c.clock_mhz;
    fill_struct(properties, p, TB_DEVICE_PROPERTIES_SIZE_V1);
  });
}

tb_status device_synchronize(int32_t index, tb_error* error) {
  return guarded(error, [&] { device(index).synchronize(); });
}

tb_status stream_default(int32_t index, tb_stream* out, tb_error* error) {
  return guarded(error,
                 [&] { required(out, "stream") = to_handle(device(index).default_stream()); });
}
tb_status stream_create(int32_t index, int32_t, tb_stream* out, tb_error* error) {
  return guarded(error,
                 [&] { required(out, "stream") = to_handle(device(index).create_stream()); });
}
tb_status stream_destroy(tb_stream handle, tb_error* error) {
  return guarded(error, [&] {
    if (handle != nullptr) stream_of(handle).device().destroy_stream(stream_of(handle));
  });
}
tb_status stream_device(tb_stream handle, int32_t* index, tb_error* error) {
  return guarded(error, [&] { required(index, "device") = stream_of(handle).device().index(); });
}
tb_status stream_synchronize(tb_stream handle, tb_error* error) {
  return guarded(error, [&] { stream_of(handle).synchronize(); });
}
tb_status stream_query(tb_stream handle, tb_error* error) {
  return guarded(error,
                 [&]() -> tb_status { return stream_of(handle).idle() ? TB_OK : TB_NOT_READY; });
}
tb_status stream_wait_event(tb_stream handle, tb_event event, tb_error* error) {
  return guarded(error, [&] { event_of(event).make_wait(stream_of(handle)); });
}
tb_status stream_begin_rehearsal(tb_stream handle, tb_error* error) {
  return guarded(error, [&] { stream_of(handle).begin_rehearsal(); });
}
tb_status stream_end_rehearsal(tb_stream handle, uint32_t* missing, tb_error* error) {
  return guarded(error, [&] {
    required(missing, "missing");
    *missing = stream_of(handle).end_rehearsal();
  });
}
tb_status stream_build_missing(tb_stream handle, uint32_t* left, tb_error* error) {
  return guarded(error, [&] {
    required(left, "left");
    Stream& stream = stream_of(handle);
    *left = stream.rehearsal().build_some(stream.device());
  });
}

tb_status event_create(int32_t index, uint32_t flags, tb_event* out, tb_error* error) {
  return guarded(error, [&] {
    check((flags & ~TB_EVENT_TIMING) == 0, "unknown event flags {:#x}", flags);
    required(out, "event") =
        reinterpret_cast<tb_event>(new Event(device(index), (flags & TB_EVENT_TIMING) != 0));
  });
}
tb_status event_destroy(tb_event handle, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    delete reinterpret_cast<Event*>(handle);
  });
}
tb_status event_record(tb_event handle, tb_stream stream, tb_error* error) {
  return guarded(error, [&] { event_of(handle).record(stream_of(stream)); });
}
tb_status event_query(tb_event handle, tb_error* error) {
  return guarded(error,
                 [&]() -> tb_status { return event_of(handle).reached() ? TB_OK : TB_NOT_READY; });
}
tb_status event_synchronize(tb_event handle, tb_error* error) {
  return guarded(error, [&] { event_of(handle).synchronize(); });
}
tb_status event_elapsed(tb_event start, tb_event end, double* milliseconds, tb_error* error) {
  return guarded(error, [&] {
    required(milliseconds, "milliseconds") = Event::elapsed_ms(event_of(start), event_of(end));
  });
}

}  // namespace

const tb_device_api kDeviceApi{
    .struct_size = sizeof(tb_device_api),
    .count = device_count,
    .report = device_report,
    .properties = device_properties,
    .synchronize = device_synchronize,
};
const tb_stream_api kStreamApi{
    .struct_size = sizeof(tb_stream_api),
    .default_stream = stream_default,
    .create = stream_create,
    .destroy = stream_destroy,
    .device = stream_device,
    .synchronize = stream_synchronize,
    .query = stream_query,
    .wait_event = stream_wait_event,
    .begin_rehearsal = stream_begin_rehearsal,
    .end_rehearsal = stream_end_rehearsal,
    .build_missing = stream_build_missing,
};
const tb_event_api kEventApi{
    .struct_size = sizeof(tb_event_api),
    .create = event_create,
    .destroy = event_destroy,
    .record = event_record,
    .query = event_query,
    .synchronize = event_synchronize,
    .elapsed_ms = event_elapsed,
};

}  // namespace ocltensor::opencl
