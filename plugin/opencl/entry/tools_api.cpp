// Capture and interop at the C boundary.
#include "base/config.h"
#include "entry.h"
#include "handles.h"
#include "runtime/device/device.h"
#include "runtime/driver/clhpp.h"
#include "runtime/memory/memory.h"
#include "runtime/observe/recorder.h"

namespace ocltensor::opencl {
namespace {

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
  return guarded(error, [&] { required(native, "native") = device(index).context()(); });
}
tb_status interop_device(int32_t index, void** native, tb_error* error) {
  return guarded(error, [&] { required(native, "native") = device(index).id(); });
}

}  // namespace

const tb_capture_api kCaptureApi{
    .struct_size = sizeof(tb_capture_api),
    .is_enabled = capture_enabled,
    .is_capturing = is_capturing,
    .start = capture_start,
    .stop = capture_stop,
};
const tb_interop_api kInteropApi{
    .struct_size = sizeof(tb_interop_api),
    .buffer = interop_buffer,
    .queue = interop_queue,
    .context = interop_context,
    .device = interop_device,
};

}  // namespace ocltensor::opencl
