// Profiler, capture and interop at the C boundary.
#include "base/config.h"
#include "entry.h"
#include "handles.h"
#include "operator_count.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/profiler.h"
#include "runtime/program.h"
#include "runtime/recorder.h"

namespace ocltensor::opencl {
namespace {

tb_status profiler_start(const char* mode, int32_t wait_until_completed, const char* path,
                         tb_error* error) {
  return guarded(error, [&] {
    profiler::start(&required(mode, "mode"), wait_until_completed != 0,
                    path == nullptr ? std::string() : path);
  });
}
tb_status profiler_stop(tb_error* error) {
  return guarded(error, [] { profiler::stop(); });
}
tb_status profiler_enabled(int32_t* enabled, tb_error* error) {
  return guarded(error, [&] { required(enabled, "enabled") = profiler::tracing() ? 1 : 0; });
}
tb_status push_range(const char* name, tb_error* error) {
  return guarded(error, [&] { profiler::push_range(&required(name, "name")); });
}
tb_status pop_range(tb_error* error) {
  return guarded(error, [] { profiler::pop_range(); });
}
tb_status counters(tb_counters* out, tb_error* error) {
  return guarded(error, [&] {
    const WorkCounters& w = work_counters();
    const BuildCounters& b = build_counters();
    fill_struct(out,
                {0, 0, operators_run(), w.launches, w.copies, w.copied_bytes, b.builds, b.loads},
                TB_COUNTERS_SIZE_V1);
  });
}

tb_status capture_enabled(int32_t* enabled, tb_error* error) {
  return guarded(error, [&] {
    required(enabled, "enabled") = config::get_bool(config::Knob::CaptureEnabled);
  });
}

tb_status is_capturing(int32_t* capturing, tb_error* error) {
  return guarded(error, [&] { required(capturing, "capturing") = recorder::capturing() ? 1 : 0; });
}
tb_status capture_start(const char* path, tb_error* error) {
  return guarded(error, [&] { recorder::start(&required(path, "path")); });
}
tb_status capture_stop(tb_error* error) {
  return guarded(error, [] { recorder::stop(); });
}

tb_status interop_buffer(tb_address address, void** native, uint64_t* offset, tb_error* error) {
  return guarded(error, [&] {
    const Place p = resolve(address, 0, 0);
    required(native, "native") = p.buffer;
    required(offset, "byte_offset") = p.offset;
  });
}
tb_status interop_queue(tb_stream stream, void** native, tb_error* error) {
  return guarded(error, [&] { required(native, "native") = stream_of(stream).queue(); });
}
tb_status interop_context(int32_t index, void** native, tb_error* error) {
  return guarded(error, [&] { required(native, "native") = device(index).context(); });
}
tb_status interop_device(int32_t index, void** native, tb_error* error) {
  return guarded(error, [&] { required(native, "native") = device(index).id(); });
}

}  // namespace

const tb_profiler_api kProfilerApi{
    sizeof(tb_profiler_api), 0,          profiler_start, profiler_stop,
    profiler_enabled,        push_range, pop_range,      counters};
const tb_capture_api kCaptureApi{sizeof(tb_capture_api), 0,           capture_enabled, is_capturing,
                                 capture_start,          capture_stop};
const tb_interop_api kInteropApi{
    sizeof(tb_interop_api), 0, interop_buffer, interop_queue, interop_context, interop_device};

}  // namespace ocltensor::opencl
