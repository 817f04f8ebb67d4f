// The device allocator: data pointer and context are both the address; memory is freed on its own
// stream.
#include "allocator.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "memory_history.h"
#include "stream.h"

namespace torch_ocl {
namespace {

tb_address address_of(const void* data) { return reinterpret_cast<tb_address>(data); }

// Remembers the stream that memory was allocated for, unless it is the device's default one:
// PyTorch's copy-on-write storages leave no room for it in the context. Costs nothing while only
// default streams are in use.
class SideStreams {
 public:
  void add(tb_address address, tb_stream stream) {
    const std::lock_guard lock(mutex_);
    streams_.emplace(address, stream);
    count_.fetch_add(1, std::memory_order_release);
  }
  // nullptr: the default stream.
  tb_stream take(tb_address address) {
    if (count_.load(std::memory_order_acquire) == 0) [[likely]]
      return nullptr;
    const std::lock_guard lock(mutex_);
    const auto it = streams_.find(address);
    if (it == streams_.end()) return nullptr;
    const tb_stream stream = it->second;
    streams_.erase(it);
    count_.fetch_sub(1, std::memory_order_release);
    return stream;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<tb_address, tb_stream> streams_;
  std::atomic<size_t> count_{0};
};

SideStreams& side_streams() {
  static auto& instance = *new SideStreams;  // leaked: memory is freed until the last thread ends
  return instance;
}

// The device of an address of the plugin.
c10::DeviceIndex device_of(tb_address address) {
  if (device_count() == 1) return 0;
  tb_memory_info info{};
  info.struct_size = sizeof info;
  call_api("memory info", api().memory->info, address, &info);
  return static_cast<c10::DeviceIndex>(info.device);
}

// torch.profiler(profile_memory=True): one row per allocation and free. `sign` is -1 for a free.
void tell_profiler(void* data, int sign) {
  if (!c10::memoryProfilingEnabled() || data == nullptr) return;
  tb_memory_info info{};
  info.struct_size = sizeof info;
  call_api("memory info", api().memory->info, address_of(data), &info);
  const auto index = static_cast<c10::DeviceIndex>(info.device);
  const tb_memory_stats stats = memory_stats(index);
  c10::reportMemoryUsageToProfiler(data, sign * static_cast<int64_t>(info.size),
                                   static_cast<size_t>(stats.allocated_bytes.current),
                                   static_cast<size_t>(stats.reserved_bytes.current),
                                   c10::Device(kOcl, index));
}

void free_memory(void* data) {
  if (data == nullptr || is_in_bad_fork()) return;
  try {
    tell_profiler(data, -1);
    const tb_address address = address_of(data);
    if (remembers()) [[unlikely]]
      remember_free(address);
    tb_stream stream = side_streams().take(address);
    if (stream == nullptr) stream = handle_of(default_stream(device_of(address)));
    call_api_noexcept("free", api().memory->free, address, stream);
  } catch (const std::exception& error) {
    log_failure(TB_E_INTERNAL, "free", error.what());
  }
}

void copy(void* target, const void* source, size_t bytes) {
  if (bytes == 0) return;
  const tb_stream stream = current_handle(device_of(address_of(target)));
  const tb_memory_api& memory = *api().memory;
  call_api("copy", api().transfer->on_device, stream, address_of(target), stream,
           address_of(source), bytes);
  call_api("record use", memory.record_use, address_of(source), stream);
}

c10::CachingAllocator::Stat to_torch(const tb_memory_stat& from) {
  c10::CachingAllocator::Stat stat;
  stat.current = from.current;
  stat.peak = from.peak;
  stat.allocated = from.allocated;
  stat.freed = from.freed;
  return stat;
}

// Cached memory that is not in use: the difference of `whole` and `used`. Its peak is not known.
c10::CachingAllocator::Stat rest(const tb_memory_stat& whole, const tb_memory_stat& used) {
  c10::CachingAllocator::Stat stat;
  stat.current = stat.peak = std::max<int64_t>(whole.current - used.current, 0);
  return stat;
}

struct Allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override { return allocate_on(current_device(), bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    copy(target, source, bytes);
  }

  bool initialized() override {
    for (c10::DeviceIndex i = 0; i < kMaxDevices; ++i)
      if (is_initialized(i)) return true;
    return false;
  }
  void emptyCache(c10::MempoolId_t) override { empty_cache(); }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    record_use(data, stream);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    const tb_memory_stats from = memory_stats(index);
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocation[kAll] = stats.active[kAll] = to_torch(from.allocations);
    stats.segment[kAll] = to_torch(from.segments);
    stats.allocated_bytes[kAll] = to_torch(from.allocated_bytes);
    stats.reserved_bytes[kAll] = to_torch(from.reserved_bytes);
    stats.active_bytes[kAll] = to_torch(from.active_bytes);
    stats.requested_bytes[kAll] = to_torch(from.requested_bytes);
    stats.inactive_split_bytes[kAll] = rest(from.reserved_bytes, from.active_bytes);
    stats.num_alloc_retries = static_cast<int64_t>(from.allocation_retries);
    stats.num_ooms = static_cast<int64_t>(from.out_of_memory_errors);
    stats.num_device_alloc = from.segments.allocated;
    stats.num_device_free = from.segments.freed;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    call_api("reset statistics", api().memory->reset_accumulated_stats, checked_index(index));
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    call_api("reset statistics", api().memory->reset_peak_stats, checked_index(index));
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    index = checked_index(index);
    tb_device_properties properties{};
    properties.struct_size = sizeof properties;
    call_api("device properties", api().device->properties, index, &properties);
    const uint64_t used = memory_stats(index).driver_bytes;
    const uint64_t total = properties.global_memory;
    return {total - std::min(used, total), total};
  }
};

Allocator& allocator() {
  static auto& instance = *new Allocator;
  return instance;
}

REGISTER_ALLOCATOR(kOcl, &allocator())

}  // namespace

c10::Allocator* device_allocator() { return &allocator(); }

c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes) {
  index = checked_index(index);
  const c10::Stream stream = current_stream(index);
  const tb_stream handle = handle_of(stream);
  tb_address address = 0;
  call_api("allocate", api().memory->allocate, index, bytes, handle, &address);
  if (stream.id() != 0 && address != 0) side_streams().add(address, handle);
  void* data = reinterpret_cast<void*>(address);  // NOLINT: an address of the device
  c10::DataPtr result(data, data, &free_memory, c10::Device(kOcl, index));
  tell_profiler(data, 1);
  if (remembers() && address != 0) [[unlikely]]
    remember_allocation(index, address, bytes, stream.id());
  return result;
}

void record_use(const c10::DataPtr& data, const c10::Stream& stream) {
  if (data.get() == nullptr) return;
  const tb_memory_api& memory = *api().memory;
  tb_memory_info info{};
  info.struct_size = sizeof info;
  if (memory.info(address_of(data.get()), &info, nullptr) != TB_OK) return;
  call_api("record use", memory.record_use, info.base, handle_of(stream));
}

void resize_storage(c10::StorageImpl& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const size_t old_bytes = storage.nbytes();
  c10::DataPtr memory = allocate_on(storage.device().index(), bytes);
  copy(memory.get(), storage.data(), std::min(bytes, old_bytes));
  storage.set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(bytes);
}

tb_memory_stats memory_stats(c10::DeviceIndex index) {
  tb_memory_stats stats{};
  stats.struct_size = sizeof stats;
  call_api("memory statistics", api().memory->stats, checked_index(index), &stats);
  return stats;
}

void empty_cache() {
  for (c10::DeviceIndex i = 0; i < kMaxDevices; ++i)
    if (is_initialized(i)) call_api("empty cache", api().memory->empty_cache, i);
}

}  // namespace torch_ocl
