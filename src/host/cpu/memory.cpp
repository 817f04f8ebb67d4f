// Host memory with statistics and limits; copies by memmove.
#include "memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "ocltensor/error.h"

namespace ocltensor::cpu {
namespace {

constexpr uint64_t kAlignment = 512;  // what the ABI promises

struct Ledger {
  std::mutex mutex;
  std::map<uint64_t, uint64_t> blocks;  // address to requested bytes
  std::map<uint64_t, uint64_t> pinned;
  tb_memory_stats stats{};
  double high = 0;  // limits as ratios of the physical memory; 0: none
  double low = 0;
};
Ledger& ledger() {
  static auto& instance = *new Ledger;  // leaked: memory is freed until the last thread ends
  return instance;
}

uint64_t rounded_up(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void grow(tb_memory_stat& stat, int64_t by) {
  stat.current += by;
  stat.peak = std::max(stat.peak, stat.current);
  (by > 0 ? stat.allocated : stat.freed) += std::abs(by);
}

void account(tb_memory_stats& s, int64_t requested, int64_t rounded, int64_t blocks) {
  grow(s.requested_bytes, requested);
  for (tb_memory_stat* stat : {&s.allocated_bytes, &s.active_bytes, &s.reserved_bytes})
    grow(*stat, rounded);
  grow(s.allocations, blocks);
  grow(s.segments, blocks);
}

uint64_t limit_of(double ratio) {
  return static_cast<uint64_t>(ratio * static_cast<double>(physical_memory()));
}

void* take(uint64_t bytes) {
  return bytes > physical_memory() ? nullptr : std::aligned_alloc(kAlignment, rounded_up(bytes));
}

void* allocate_checked(Ledger& l, uint64_t bytes) {
  const auto used = static_cast<uint64_t>(l.stats.allocated_bytes.current);
  const uint64_t limit = limit_of(l.high);
  void* memory =
      limit != 0 && (bytes > limit || used + rounded_up(bytes) > limit) ? nullptr : take(bytes);
  if (memory != nullptr) return memory;
  ++l.stats.out_of_memory_errors;
  fail(TB_E_OUT_OF_MEMORY,
       "out of memory on the CPU backend: {} bytes requested, {} allocated, limit {} (0: none), "
       "{} bytes of physical memory. Free tensors, use smaller batches or raise the memory "
       "fraction",
       bytes, used, limit, physical_memory());
}

tb_status allocate(int32_t device, uint64_t bytes, tb_stream, tb_address* address,
                   tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    *address = 0;
    if (bytes == 0) return;
    Ledger& l = ledger();
    const std::lock_guard lock(l.mutex);
    const auto at = reinterpret_cast<uint64_t>(allocate_checked(l, bytes));
    l.blocks.emplace(at, bytes);
    account(l.stats, static_cast<int64_t>(bytes), static_cast<int64_t>(rounded_up(bytes)), 1);
    *address = at;
  });
}

tb_status free_block(tb_address address, tb_stream, tb_error* error) {
  return guarded(error, [&] {
    if (address == 0) return;
    Ledger& l = ledger();
    const std::lock_guard lock(l.mutex);
    const auto it = l.blocks.find(address);
    check(it != l.blocks.end(), "free: {:#x} is not the start of a live allocation", address);
    account(l.stats, -static_cast<int64_t>(it->second),
            -static_cast<int64_t>(rounded_up(it->second)), -1);
    l.blocks.erase(it);
    std::free(reinterpret_cast<void*>(address));  // NOLINT: addresses are host pointers here
  });
}

tb_status record_use(tb_address, tb_stream, tb_error*) { return TB_OK; }  // nothing is pending

tb_status info(tb_address address, tb_memory_info* info, tb_error* error) {
  return guarded(error, [&] {
    check(info != nullptr && info->struct_size >= TB_MEMORY_INFO_SIZE_V1,
          "tb_memory_info is missing or too small");
    Ledger& l = ledger();
    const std::lock_guard lock(l.mutex);
    auto it = l.blocks.upper_bound(address);
    check(it != l.blocks.begin() && address < std::prev(it)->first + std::prev(it)->second,
          "{:#x} is not inside a live allocation", address);
    --it;
    info->device = 0;
    info->base = it->first;
    info->size = it->second;
  });
}

tb_status stats(int32_t device, tb_memory_stats* stats, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    check(stats != nullptr && stats->struct_size >= TB_MEMORY_STATS_SIZE_V1,
          "tb_memory_stats is missing or too small");
    Ledger& l = ledger();
    const std::lock_guard lock(l.mutex);
    const uint32_t size = stats->struct_size;
    *stats = l.stats;
    stats->struct_size = size;
    stats->driver_bytes = static_cast<uint64_t>(l.stats.reserved_bytes.current);
    stats->recommended_bytes = physical_memory();
    stats->limit_bytes = limit_of(l.high);
    stats->low_limit_bytes = limit_of(l.low);
  });
}

template <typename F>
tb_status for_each_stat(int32_t device, tb_error* error, F&& f) {
  return guarded(error, [&] {
    check_device(device);
    Ledger& l = ledger();
    const std::lock_guard lock(l.mutex);
    tb_memory_stats& s = l.stats;
    for (tb_memory_stat* stat : {&s.requested_bytes, &s.allocated_bytes, &s.active_bytes,
                                 &s.reserved_bytes, &s.allocations, &s.segments, &s.pinned_bytes})
      f(*stat);
  });
}

tb_status reset_peak(int32_t device, tb_error* error) {
  return for_each_stat(device, error, [](tb_memory_stat& s) { s.peak = s.current; });
}
tb_status reset_accumulated(int32_t device, tb_error* error) {
  return for_each_stat(device, error, [](tb_memory_stat& s) { s.allocated = s.freed = 0; });
}

tb_status empty_cache(int32_t device, tb_error* error) {
  return guarded(error, [&] { check_device(device); });  // nothing is cached
}

tb_status set_fraction(int32_t device, double fraction, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    check(fraction >= 0 && fraction <= 2, "the memory fraction must be in 0..2, got {}", fraction);
    const std::lock_guard lock(ledger().mutex);
    ledger().high = fraction;
  });
}

tb_status set_watermarks(int32_t device, double high, double low, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    check(high >= 0 && low >= 0, "watermark ratios must not be negative, got {} and {}", high, low);
    const std::lock_guard lock(ledger().mutex);
    ledger().high = high;
    ledger().low = high > 0 ? std::min(low, high) : low;
  });
}

tb_status allocate_host(int32_t device, uint64_t bytes, void** memory, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    Ledger& l = ledger();
    const std::lock_guard lock(l.mutex);
    *memory = bytes == 0 ? nullptr : take(bytes);
    if (bytes == 0) return;
    if (*memory == nullptr) fail(TB_E_OUT_OF_MEMORY, "out of host memory for {} bytes", bytes);
    l.pinned.emplace(reinterpret_cast<uint64_t>(*memory), bytes);
    grow(l.stats.pinned_bytes, static_cast<int64_t>(bytes));
  });
}

tb_status free_host(void* memory, tb_error* error) {
  return guarded(error, [&] {
    if (memory == nullptr) return;
    Ledger& l = ledger();
    const std::lock_guard lock(l.mutex);
    const auto it = l.pinned.find(reinterpret_cast<uint64_t>(memory));
    check(it != l.pinned.end(), "free_host: not the start of live pinned memory");
    grow(l.stats.pinned_bytes, -static_cast<int64_t>(it->second));
    l.pinned.erase(it);
    std::free(memory);
  });
}

tb_status is_host(const void* memory, int32_t* is_pinned, tb_error* error) {
  return guarded(error, [&] {
    Ledger& l = ledger();
    const std::lock_guard lock(l.mutex);
    const auto address = reinterpret_cast<uint64_t>(memory);
    const auto it = l.pinned.upper_bound(address);
    *is_pinned =
        it != l.pinned.begin() && address < std::prev(it)->first + std::prev(it)->second ? 1 : 0;
  });
}

tb_status map(tb_address address, uint64_t, tb_stream, void** memory, tb_error*) {
  *memory = reinterpret_cast<void*>(address);  // NOLINT: addresses are host pointers here
  return TB_OK;
}
tb_status unmap(tb_address, void*, tb_stream, tb_error*) { return TB_OK; }

std::atomic<uint64_t> copy_count{0};
std::atomic<uint64_t> copy_bytes{0};

tb_status copy(void* target, const void* source, uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    if (bytes == 0) return;
    check(target != nullptr && source != nullptr, "a copy of {} bytes from or to address 0", bytes);
    std::memmove(target, source, bytes);
    ++copy_count;
    copy_bytes += bytes;
  });
}

void* pointer(tb_address address) {
  return reinterpret_cast<void*>(address);  // NOLINT: addresses are host pointers here
}

tb_status to_device(tb_stream, tb_address target, const void* source, uint64_t bytes, uint32_t,
                    tb_error* error) {
  return copy(pointer(target), source, bytes, error);
}
tb_status to_host(tb_stream, void* target, tb_address source, uint64_t bytes, uint32_t,
                  tb_error* error) {
  return copy(target, pointer(source), bytes, error);
}
tb_status on_device(tb_stream, tb_address target, tb_stream, tb_address source, uint64_t bytes,
                    tb_error* error) {
  return copy(pointer(target), pointer(source), bytes, error);
}
tb_status fill(tb_stream, tb_address target, const void* pattern, uint32_t pattern_bytes,
               uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    const uint32_t p = pattern_bytes;
    check(p == 1 || p == 2 || p == 4 || p == 8 || p == 16,
          "a fill pattern has 1, 2, 4, 8 or 16 bytes, got {}", p);
    check(bytes % p == 0, "{} bytes are not a multiple of the pattern's {}", bytes, p);
    check(bytes == 0 || target != 0, "a fill of {} bytes at address 0", bytes);
    auto* to = static_cast<char*>(pointer(target));
    for (uint64_t i = 0; i < bytes; i += p) std::memcpy(to + i, pattern, p);
  });
}

}  // namespace

uint64_t physical_memory() {
  static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  return bytes;
}
uint64_t copies() { return copy_count; }
uint64_t copied_bytes() { return copy_bytes; }

void check_device(int32_t device) {
  check(device == 0, "the CPU backend has one device, index 0; got {}", device);
}

const tb_memory_api* memory_api() {
  static const tb_memory_api api = {
      .struct_size = sizeof(tb_memory_api),
      .allocate = allocate,
      .free = free_block,
      .record_use = record_use,
      .info = info,
      .stats = stats,
      .reset_peak_stats = reset_peak,
      .reset_accumulated_stats = reset_accumulated,
      .empty_cache = empty_cache,
      .set_fraction = set_fraction,
      .set_watermarks = set_watermarks,
      .allocate_host = allocate_host,
      .free_host = free_host,
      .is_host = is_host,
      .map = map,
      .unmap = unmap,
  };
  return &api;
}

const tb_transfer_api* transfer_api() {
  static const tb_transfer_api api = {
      .struct_size = sizeof(tb_transfer_api),
      .to_device = to_device,
      .to_host = to_host,
      .on_device = on_device,
      .fill = fill,
  };
  return &api;
}

}  // namespace ocltensor::cpu
