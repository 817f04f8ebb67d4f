// The current device and streams of each thread, and the pools of streams.
#include "stream.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <mutex>

namespace torch_ocl {
namespace {

// Stream ids of a device: 0 is the default stream, 1 to 32 the pool, 33 to 64 the pool of high
// priority, 65 the stream for rehearsals.
constexpr int kPoolSize = 32;
constexpr int kRehearsal = 1 + 2 * kPoolSize;
constexpr int kIds = kRehearsal + 1;

struct DeviceStreams {
  std::array<std::atomic<tb_stream>, kIds> handles{};  // null: not created yet
  std::array<std::atomic<uint32_t>, 2> next{};         // the next stream of each pool
  std::mutex making;
};

// Leaked: memory is freed on its stream until the last thread ends.
DeviceStreams& streams_of(c10::DeviceIndex index) {
  static auto& all = *new std::array<DeviceStreams, kMaxDevices>;
  return all[static_cast<size_t>(index)];
}

constexpr c10::DeviceIndex kUnset = -1;
thread_local c10::DeviceIndex chosen_device = kUnset;
std::atomic<int> preferred_cpu{0};  // modulo the devices

// Where a thread begins: at device 0, but processes that share CPUs at one for each.
c10::DeviceIndex first_device() {
  const int preferred = preferred_cpu.load(std::memory_order_relaxed);
  if (preferred <= 0 || device_count() == 0) return 0;
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
    tb_device_properties properties{};
    properties.struct_size = sizeof properties;
    if (api().device->properties(index, &properties, nullptr) != TB_OK ||
        properties.kind != TB_DEVICE_CPU)
      return 0;
  }
  return static_cast<c10::DeviceIndex>(preferred % device_count());
}

c10::DeviceIndex this_device() {
  if (chosen_device == kUnset) [[unlikely]]
    chosen_device = first_device();
  return chosen_device;
}

thread_local std::array<c10::StreamId, kMaxDevices> this_streams{};

c10::Stream stream_of(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kOcl, index), id);
}

tb_stream make(DeviceStreams& streams, c10::DeviceIndex index, c10::StreamId id) {
  const std::lock_guard lock(streams.making);
  auto& slot = streams.handles[static_cast<size_t>(id)];
  tb_stream handle = slot.load(std::memory_order_acquire);
  if (handle != nullptr) return handle;
  if (id == 0) {
    call_api("default stream", api().stream->default_stream, index, &handle);
  } else {
    const int priority =
        id > kPoolSize && id < kRehearsal ? -1 : 0;  // lower is more urgent, as in torch.Stream
    call_api("new stream", api().stream->create, index, priority, &handle);
  }
  slot.store(handle, std::memory_order_release);
  return handle;
}

}  // namespace

c10::DeviceIndex current_device() { return this_device(); }

void prefer_cpu(int index) { preferred_cpu = index; }

void set_current_device(c10::DeviceIndex index) { chosen_device = checked_index(index); }

c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept {
  const c10::DeviceIndex previous = this_device();
  if (index >= 0 && index < device_count()) chosen_device = index;
  return previous;
}

c10::DeviceIndex checked_index(c10::DeviceIndex index) {
  if (index == -1) return this_device();
  const c10::DeviceIndex count = device_count();
  if (count == 0) require_device();
  TORCH_CHECK(index >= 0 && index<count, "there is no device ocl:", static_cast<int>(index),
                                  "; the devices are ocl:0", count> 1
                  ? c10::str(" to ocl:", count - 1)
                  : "");
  return index;
}

c10::Stream current_stream(c10::DeviceIndex index) {
  if (index < 0) index = this_device();
  TORCH_CHECK(index < kMaxDevices, "there is no device ocl:", static_cast<int>(index));
  return stream_of(index, this_streams[static_cast<size_t>(index)]);
}

c10::Stream default_stream(c10::DeviceIndex index) { return stream_of(checked_index(index), 0); }

c10::Stream stream_from_pool(bool high_priority, c10::DeviceIndex index) {
  index = checked_index(index);
  const uint32_t turn = streams_of(index).next[high_priority ? 1 : 0].fetch_add(1) % kPoolSize;
  return stream_of(index, 1 + static_cast<int>(turn) + (high_priority ? kPoolSize : 0));
}

c10::Stream rehearsal_stream(c10::DeviceIndex index) {
  return stream_of(checked_index(index), kRehearsal);
}

c10::Stream exchange_stream(const c10::Stream& stream) {
  handle_of(stream);  // checks device and id
  const auto index = static_cast<size_t>(stream.device_index());
  return stream_of(stream.device_index(), std::exchange(this_streams[index], stream.id()));
}

tb_stream handle_of(const c10::Stream& stream) {
  const c10::DeviceIndex index = stream.device_index();
  const c10::StreamId id = stream.id();
  TORCH_CHECK(
      stream.device_type() == kOcl && index >= 0 && index < kMaxDevices && id >= 0 && id < kIds,
      stream, " is not a stream of an ocl device");
  DeviceStreams& streams = streams_of(index);
  tb_stream handle = streams.handles[static_cast<size_t>(id)].load(std::memory_order_acquire);
  if (handle == nullptr) [[unlikely]]
    handle = make(streams, checked_index(index), id);
  return handle;
}

bool is_initialized(c10::DeviceIndex index) noexcept {
  if (index < 0 || index >= kMaxDevices) return false;
  for (const auto& handle : streams_of(index).handles)
    if (handle.load(std::memory_order_relaxed) != nullptr) return true;
  return false;
}

}  // namespace torch_ocl
