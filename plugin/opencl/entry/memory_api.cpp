// Memory and transfers at the C boundary.
#include "entry.h"
#include "handles.h"
#include "runtime/device/device.h"
#include "runtime/driver/clhpp.h"
#include "runtime/driver/process.h"
#include "runtime/memory/memory.h"
#include "runtime/observe/profile_settings.h"
#include "runtime/observe/profiler.h"
#include "runtime/queue/device_copy.h"

namespace ocltensor::opencl {
namespace {

Stream& stream_on(int32_t index, tb_stream handle) {
  Stream& stream = stream_of(handle);
  check(stream.device().index() == index, "the stream belongs to device {}, not {}",
        stream.device().index(), index);
  return stream;
}

// The buffer and offset of [address, address + bytes), which must lie within one live allocation.
Place place(tb_address address, uint64_t bytes) {
  const runtime::BlockInfo block = device_of(address).memory().pool().info(address);
  check(bytes <= block.requested && address - block.base <= block.requested - bytes,
        "{} bytes at {:#x} reach beyond the allocation of {} bytes at {:#x}", bytes, address,
        block.requested, block.base);
  return resolve(address, 0, 0);
}

tb_status allocate(int32_t index, uint64_t bytes, tb_stream stream, tb_address* address,
                   tb_error* error) {
  return guarded(error, [&] {
    required(address, "address") = 0;
    *address = device(index).memory().allocate(bytes, stream_on(index, stream).id());
  });
}
tb_status free_memory(tb_address address, tb_stream stream, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    if (address != 0) device_of(address).memory().free(address, stream_of(stream).id());
  });
}
tb_status record_use(tb_address address, tb_stream stream, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    if (address != 0)
      device_of(address).memory().pool().record_use(address, stream_of(stream).id());
  });
}
tb_status memory_info(tb_address address, tb_memory_info* info, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    Device& d = device_of(address);
    const runtime::BlockInfo block = d.memory().pool().info(address);
    fill_struct(info, {0, d.index(), block.base, block.requested}, TB_MEMORY_INFO_SIZE_V1);
  });
}
tb_status memory_stats(int32_t index, tb_memory_stats* stats, tb_error* error) {
  return guarded(error, [&] {
    tb_memory_stats s{};
    device(index).memory().pool().fill_stats(s);
    fill_struct(stats, s, TB_MEMORY_STATS_SIZE_V1);
  });
}
tb_status reset_peak(int32_t index, tb_error* error) {
  return guarded(error, [&] { device(index).memory().pool().reset_peak_stats(); });
}
tb_status reset_accumulated(int32_t index, tb_error* error) {
  return guarded(error, [&] { device(index).memory().pool().reset_accumulated_stats(); });
}
tb_status empty_cache(int32_t index, tb_error* error) {
  return guarded(error, [&] { device(index).memory().pool().empty_cache(); });
}
tb_status set_fraction(int32_t index, double fraction, tb_error* error) {
  return guarded(error, [&] { device(index).memory().pool().set_fraction(fraction); });
}
tb_status set_watermarks(int32_t index, double high, double low, tb_error* error) {
  return guarded(error, [&] { device(index).memory().pool().set_watermarks(high, low); });
}
tb_status allocate_host(int32_t index, uint64_t bytes, void** memory, tb_error* error) {
  return guarded(error, [&] {
    required(memory, "memory") = nullptr;
    *memory = device(index).memory().allocate_host(bytes);
  });
}
tb_status free_host(void* memory, tb_error* error) {
  return guarded(error, [&] {
    check_process();
    if (memory == nullptr) return;
    for (const auto& d : device_list().devices)
      if (d->memory().free_host(memory)) return;
    fail(TB_E_INVALID, "{} is not the start of pinned memory of this plugin", memory);
  });
}
tb_status is_host(const void* memory, int32_t* is_pinned, tb_error* error) {
  return guarded(error, [&] {
    required(is_pinned, "is_pinned") = 0;
    for (const auto& d : device_list().devices)
      if (d->is_open() && d->memory().is_host(memory)) *is_pinned = 1;
  });
}
tb_status map_memory(tb_address address, uint64_t bytes, tb_stream stream, void** memory,
                     tb_error* error) {
  return guarded(error, [&] {
    required(memory, "memory") = nullptr;
    Stream& s = stream_of(stream);
    if (!s.device().caps().unified_memory)
      unsupported(TB_REASON_DEVICE_FEATURE, "{} does not share its memory with the host",
                  s.device().caps().name);
    const Place p = place(address, bytes);
    *memory = s.map(p.buffer, p.offset, bytes);
  });
}
tb_status unmap_memory(tb_address address, void* memory, tb_stream stream, tb_error* error) {
  return guarded(error, [&] { stream_of(stream).unmap(place(address, 0).buffer, memory); });
}

// Records a copy in traces and statistics, and prints its line of the log.
class TracedCopy {
 public:
  TracedCopy(const char* what, uint64_t bytes, const Stream& stream, tb_address address)
      : call_("copy", what) {
    const uint32_t log = profiler::log_mask();
    if ((log & profiler::kLogCopies) == 0) return;
    std::string text = fmt::format("{} ({} bytes, ocl:{}", what, bytes, stream.device().index());
    if ((log & profiler::kLogBufferIds) != 0) text += fmt::format(", buffer {:#x}", address);
    call_.say(text + ")");
  }

 private:
  profiler::HostCall call_;
};

tb_status to_device(tb_stream stream, tb_address target, const void* source, uint64_t bytes,
                    uint32_t flags, tb_error* error) {
  return guarded(error, [&] {
    Stream& s = stream_of(stream);
    if (bytes == 0) return;
    required(static_cast<const char*>(source), "source");
    const Place p = place(target, bytes);
    if (s.is_recording() && ((flags & TB_COPY_ASYNC) == 0 || !s.device().memory().is_host(source)))
      s.check({"copying from the host, except asynchronously from pinned memory,"});
    const TracedCopy traced("copy to device", bytes, s, target);
    s.write(p.buffer, p.offset, source, bytes, (flags & TB_COPY_ASYNC) != 0);
  });
}
tb_status to_host(tb_stream stream, void* target, tb_address source, uint64_t bytes, uint32_t flags,
                  tb_error* error) {
  return guarded(error, [&] {
    Stream& s = stream_of(stream);
    if (bytes == 0) return;
    required(static_cast<char*>(target), "target");
    const Place p = place(source, bytes);
    const TracedCopy traced("copy to host", bytes, s, source);
    s.read(target, p.buffer, p.offset, bytes, (flags & TB_COPY_ASYNC) != 0);
  });
}
tb_status on_device(tb_stream stream, tb_address target, tb_stream source_stream, tb_address source,
                    uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    Stream& s = stream_of(stream);
    Stream& from = stream_of(source_stream);
    if (bytes == 0) return;
    const bool is_local = &s.device() == &from.device();
    const TracedCopy traced(is_local ? "copy on device" : "copy between devices", bytes, s, target);
    const Place to = place(target, bytes);
    const Place in = place(source, bytes);
    if (is_local) {
      check(target + bytes <= source || source + bytes <= target,
            "source and target of the copy overlap");
      if (&s != &from) s.wait_event(from.marker(false)());
      return s.copy(to.buffer, to.offset, in.buffer, in.offset, bytes);
    }
    s.check({"copying from another device"});
    copy_between_devices(s, to, from, in, bytes);
  });
}
tb_status fill(tb_stream stream, tb_address target, const void* pattern, uint32_t pattern_bytes,
               uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    Stream& s = stream_of(stream);
    check(pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4 || pattern_bytes == 8 ||
              pattern_bytes == 16,
          "a pattern has 1, 2, 4, 8 or 16 bytes, got {}", pattern_bytes);
    check(bytes % pattern_bytes == 0, "{} bytes are no multiple of the pattern's {}", bytes,
          pattern_bytes);
    if (bytes == 0) return;
    required(static_cast<const char*>(pattern), "pattern");
    const Place p = place(target, bytes);
    check(p.offset % pattern_bytes == 0, "the target is not aligned to the pattern's {} bytes",
          pattern_bytes);
    const TracedCopy traced("fill", bytes, s, target);
    s.fill(p.buffer, p.offset, pattern, pattern_bytes, bytes);
  });
}

}  // namespace

const tb_memory_api kMemoryApi{
    .struct_size = sizeof(tb_memory_api),
    .allocate = allocate,
    .free = free_memory,
    .record_use = record_use,
    .info = memory_info,
    .stats = memory_stats,
    .reset_peak_stats = reset_peak,
    .reset_accumulated_stats = reset_accumulated,
    .empty_cache = empty_cache,
    .set_fraction = set_fraction,
    .set_watermarks = set_watermarks,
    .allocate_host = allocate_host,
    .free_host = free_host,
    .is_host = is_host,
    .map = map_memory,
    .unmap = unmap_memory,
};
const tb_transfer_api kTransferApi{
    .struct_size = sizeof(tb_transfer_api),
    .to_device = to_device,
    .to_host = to_host,
    .on_device = on_device,
    .fill = fill,
};

}  // namespace ocltensor::opencl
