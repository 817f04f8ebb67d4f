// Capture and interop at the C boundary.
#include <cstring>

#include "base/config.h"
#include "entry.h"
#include "handles.h"
#include "runtime/device/device.h"
#include "runtime/driver/clhpp.h"
#include "runtime/memory/memory.h"
#include "runtime/observe/recorder.h"
#include "runtime/queue/stream.h"

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

tb_status shared_place(tb_address address, tb_shared_memory* place, tb_error* error) {
  return guarded(error, [&] {
    const Memory::SharedPlace found = device_of(address).memory().shared_place(address);
    tb_shared_memory filled{};
    filled.number = found.memory.number();
    std::strncpy(filled.library, found.memory.library(), sizeof filled.library - 1);
    filled.address = found.segment.address + found.offset;
    filled.segment = address - found.offset;
    filled.bytes = found.segment.bytes;
    fill_struct(place, filled, TB_SHARED_MEMORY_SIZE_V1);
  });
}
tb_status shared_synchronize(int32_t index, tb_error* error) {
  return guarded(error, [&] { device(index).memory().shared_memory().synchronize(); });
}
tb_status export_memory(tb_address address, int32_t* descriptor, tb_error* error) {
  return guarded(error, [&] {
    const Memory::SharedPlace found = device_of(address).memory().shared_place(address);
    required(descriptor, "descriptor") = found.memory.export_descriptor(found.segment);
  });
}
tb_status import_memory(tb_stream stream, int32_t descriptor, uint64_t bytes, tb_address* address,
                        tb_error* error) {
  return guarded(error, [&] {
    required(address, "address") = 0;
    Stream& s = stream_of(stream);
    *address = s.device().memory().import(descriptor, bytes, s.id());
  });
}
tb_status import_address(tb_stream stream, uint64_t library_address, uint64_t bytes,
                         tb_address* address, int32_t* is_own, tb_error* error) {
  return guarded(error, [&] {
    required(address, "address") = 0;
    Stream& s = stream_of(stream);
    bool is_ours = false;
    *address = s.device().memory().import_address(library_address, bytes, s.id(), is_ours);
    required(is_own, "is_own") = is_ours ? 1 : 0;
  });
}
tb_status release_import(tb_address address, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    device_of(address).memory().release_import(address);
  });
}
tb_status copy_from_library(tb_stream stream, tb_address target, uint64_t library_address,
                            uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    Stream& s = stream_of(stream);
    (void)s.device().memory().shared_memory();  // or the reason why there is none
    if (bytes == 0) return;
    const runtime::BlockInfo block = s.device().memory().pool().info(target);
    check(bytes <= block.requested && target - block.base <= block.requested - bytes,
          "{} bytes at {:#x} reach beyond the allocation", bytes, target);
    const Memory::SharedPlace to = s.device().memory().shared_place(target);
    s.synchronize();
    to.memory.synchronize();
    to.memory.copy(to.segment.address + to.offset, library_address, bytes);
  });
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
    .shared_place = shared_place,
    .shared_synchronize = shared_synchronize,
    .export_memory = export_memory,
    .import_memory = import_memory,
    .import_address = import_address,
    .release_import = release_import,
    .copy_from_library = copy_from_library,
};

}  // namespace ocltensor::opencl
