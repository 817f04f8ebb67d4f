// Memory of the BLAS backend. Its addresses are numbers of its own: a host that reads one crashes.
#include <cstring>
#include <map>
#include <memory>

#include "blas.h"

namespace blas {
namespace {

struct Block {
  std::unique_ptr<char[]> memory;
  uint64_t bytes;
};
constexpr uint64_t kAlignment = 512;

std::mutex mutex;
std::map<tb_address, Block> blocks;
std::map<const char*, std::pair<std::unique_ptr<char[]>, uint64_t>> pinned;
tb_address next_address = UINT64_C(6) << 60;
tb_memory_stats totals{};

uint64_t rounded(uint64_t bytes) { return (bytes / kAlignment + 1) * kAlignment; }

void change(tb_memory_stat& stat, int64_t by) {
  stat.current += by;
  stat.peak = std::max(stat.peak, stat.current);
  (by > 0 ? stat.allocated : stat.freed) += by > 0 ? by : -by;
}
void count_block(uint64_t bytes, int sign) {
  change(totals.requested_bytes, sign * static_cast<int64_t>(bytes));
  for (tb_memory_stat* stat :
       {&totals.allocated_bytes, &totals.active_bytes, &totals.reserved_bytes})
    change(*stat, sign * static_cast<int64_t>(rounded(bytes)));
  change(totals.allocations, sign);
  change(totals.segments, sign);
  totals.driver_bytes = static_cast<uint64_t>(totals.reserved_bytes.current);
}
template <typename Change>
void for_each_stat(Change change_one) {
  for (tb_memory_stat* stat :
       {&totals.requested_bytes, &totals.allocated_bytes, &totals.active_bytes,
        &totals.reserved_bytes, &totals.allocations, &totals.segments, &totals.pinned_bytes})
    change_one(*stat);
}

std::map<tb_address, Block>::iterator find(tb_address address, uint64_t bytes) {
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) return blocks.end();
  --it;
  const uint64_t offset = address - it->first;
  return offset < it->second.bytes && bytes <= it->second.bytes - offset ? it : blocks.end();
}

tb_status allocate(int32_t device, uint64_t bytes, tb_stream stream, tb_address* address,
                   tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    check_stream(stream);
    *address = 0;
    if (bytes == 0) return;
    const std::lock_guard lock(mutex);
    if (bytes > UINT64_C(1) << 50) {
      ++totals.out_of_memory_errors;
      throw Refusal{TB_E_OUT_OF_MEMORY, 0, "no machine has so many bytes"};
    }
    Block block{std::make_unique_for_overwrite<char[]>(bytes), bytes};
    *address = next_address;
    next_address += rounded(bytes);
    blocks.emplace(*address, std::move(block));
    count_block(bytes, 1);
  });
}

tb_status release(tb_address address, tb_stream stream, tb_error* error) {
  return guarded(error, [&] {
    check_stream(stream);
    if (address == 0) return;
    const std::lock_guard lock(mutex);
    const auto it = blocks.find(address);
    if (it == blocks.end()) invalid("no allocation begins there");
    count_block(it->second.bytes, -1);
    blocks.erase(it);
  });
}

tb_status record_use(tb_address address, tb_stream stream, tb_error* error) {
  return guarded(error, [&] {
    check_stream(stream);
    translate(address, 1);
  });
}

tb_status info(tb_address address, tb_memory_info* info, tb_error* error) {
  return guarded(error, [&] {
    check_size(info, TB_MEMORY_INFO_SIZE_V1);
    const std::lock_guard lock(mutex);
    const auto it = find(address, 1);
    if (it == blocks.end()) invalid("the address lies in no allocation");
    info->device = 0;
    info->base = it->first;
    info->size = it->second.bytes;
  });
}

tb_status stats(int32_t device, tb_memory_stats* stats, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    check_size(stats, TB_MEMORY_STATS_SIZE_V1);
    const uint32_t size = stats->struct_size;
    const std::lock_guard lock(mutex);
    std::memcpy(stats, &totals, TB_MEMORY_STATS_SIZE_V1);
    stats->struct_size = size;
  });
}
tb_status reset_peaks(int32_t device, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    const std::lock_guard lock(mutex);
    for_each_stat([](tb_memory_stat& s) { s.peak = s.current; });
  });
}
tb_status reset_accumulated(int32_t device, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    const std::lock_guard lock(mutex);
    for_each_stat([](tb_memory_stat& s) { s.allocated = s.freed = 0; });
  });
}

tb_status allocate_host(int32_t device, uint64_t bytes, void** memory, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    auto block = std::make_unique_for_overwrite<char[]>(bytes + 1);
    *memory = block.get();
    const std::lock_guard lock(mutex);
    change(totals.pinned_bytes, static_cast<int64_t>(bytes));
    const char* key = block.get();
    pinned.emplace(key, std::pair(std::move(block), bytes));
  });
}
tb_status free_host(void* memory, tb_error* error) {
  return guarded(error, [&] {
    if (memory == nullptr) return;
    const std::lock_guard lock(mutex);
    const auto it = pinned.find(static_cast<const char*>(memory));
    if (it == pinned.end()) invalid("that is no pinned memory");
    change(totals.pinned_bytes, -static_cast<int64_t>(it->second.second));
    pinned.erase(it);
  });
}
tb_status is_host(const void* memory, int32_t* is_pinned, tb_error* error) {
  return guarded(error, [&] {
    const auto* at = static_cast<const char*>(memory);
    const std::lock_guard lock(mutex);
    const auto it = pinned.upper_bound(at);
    *is_pinned =
        it != pinned.begin() && at < std::prev(it)->first + std::prev(it)->second.second ? 1 : 0;
  });
}

void count_copy(uint64_t bytes) {
  ++counters.copies;
  counters.copied_bytes += bytes;
}

tb_status to_device(tb_stream stream, tb_address target, const void* source, uint64_t bytes,
                    uint32_t, tb_error* error) {
  return guarded(error, [&] {
    const std::lock_guard lock(check_stream(stream).order);
    if (bytes != 0) std::memcpy(translate(target, bytes), source, bytes);
    count_copy(bytes);
  });
}
tb_status to_host(tb_stream stream, void* target, tb_address source, uint64_t bytes, uint32_t,
                  tb_error* error) {
  return guarded(error, [&] {
    const std::lock_guard lock(check_stream(stream).order);
    if (bytes != 0) std::memcpy(target, translate(source, bytes), bytes);
    count_copy(bytes);
  });
}
tb_status on_device(tb_stream stream, tb_address target, tb_stream source_stream, tb_address source,
                    uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    check_stream(source_stream);
    const std::lock_guard lock(check_stream(stream).order);
    if (bytes == 0) return;
    char* to = translate(target, bytes);
    const char* from = translate(source, bytes);
    if (target < source + bytes && source < target + bytes) invalid("the ranges overlap");
    std::memcpy(to, from, bytes);
    count_copy(bytes);
  });
}
tb_status fill(tb_stream stream, tb_address target, const void* pattern, uint32_t width,
               uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    const std::lock_guard lock(check_stream(stream).order);
    if (width != 1 && width != 2 && width != 4 && width != 8 && width != 16)
      invalid("a pattern has 1, 2, 4, 8 or 16 bytes");
    if (bytes % width != 0 || target % width != 0) invalid("the range holds no whole patterns");
    if (bytes == 0) return;
    char* to = translate(target, bytes);
    for (uint64_t i = 0; i < bytes; i += width) std::memcpy(to + i, pattern, width);
  });
}

}  // namespace

char* translate(tb_address address, uint64_t bytes) {
  const std::lock_guard lock(mutex);
  const auto it = find(address, bytes);
  if (it == blocks.end()) invalid("the range lies in no allocation");
  return it->second.memory.get() + (address - it->first);
}

void fill_memory(tb_plugin_api& plugin) {
  totals.struct_size = sizeof totals;
  totals.recommended_bytes = UINT64_C(1) << 32;
  tb_memory_api& m = plugin.memory;
  m.allocate = allocate;
  m.free = release;
  m.record_use = record_use;
  m.info = info;
  m.stats = stats;
  m.reset_peak_stats = reset_peaks;
  m.reset_accumulated_stats = reset_accumulated;
  m.allocate_host = allocate_host;
  m.free_host = free_host;
  m.is_host = is_host;
  plugin.transfer.to_device = to_device;
  plugin.transfer.to_host = to_host;
  plugin.transfer.on_device = on_device;
  plugin.transfer.fill = fill;
}

}  // namespace blas
