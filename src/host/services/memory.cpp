// Memory figures, limits and cache of a device.
#include "ocltensor/memory.h"

#include "host/core/backend.h"

namespace ocltensor {
namespace {

const tb_memory_api& api(Device device) { return *backend(device).api->memory; }
int32_t index(Device device) { return device.index(); }
uint64_t bytes(int64_t figure) { return figure < 0 ? 0 : static_cast<uint64_t>(figure); }

}  // namespace

MemoryStats memory_stats(Device device) {
  MemoryStats stats{};
  stats.struct_size = sizeof stats;
  invoke_api("memory_stats", api(device).stats, index(device), &stats);
  return stats;
}

uint64_t current_allocated_memory(Device device) {
  return bytes(memory_stats(device).allocated_bytes.current);
}
uint64_t driver_allocated_memory(Device device) { return memory_stats(device).driver_bytes; }
uint64_t recommended_max_memory(Device device) { return memory_stats(device).recommended_bytes; }
uint64_t max_allocated_memory(Device device) {
  return bytes(memory_stats(device).allocated_bytes.peak);
}
uint64_t reserved_memory(Device device) {
  return bytes(memory_stats(device).reserved_bytes.current);
}

void reset_peak_memory_stats(Device device) {
  invoke_api("reset_peak_memory_stats", api(device).reset_peak_stats, index(device));
}
void reset_accumulated_memory_stats(Device device) {
  invoke_api("reset_accumulated_memory_stats", api(device).reset_accumulated_stats, index(device));
}
void empty_cache(Device device) {
  invoke_api("empty_cache", api(device).empty_cache, index(device));
}

void set_per_process_memory_fraction(double fraction, Device device) {
  check(fraction >= 0 && fraction <= 2, "Invalid fraction value: {}. Allowed range: 0~2", fraction);
  invoke_api("set_per_process_memory_fraction", api(device).set_fraction, index(device), fraction);
}

}  // namespace ocltensor
