// Memory of a device: statistics in bytes, the limit, the cache. Every function is thread-safe.
#pragma once

#include "ocltensor/device.h"

namespace ocltensor {

using MemoryStats = tb_memory_stats;

OCLTENSOR_API MemoryStats memory_stats(Device device = "ocl");
OCLTENSOR_API uint64_t current_allocated_memory(Device device = "ocl");  // without cached blocks
OCLTENSOR_API uint64_t driver_allocated_memory(Device device = "ocl");   // with cached blocks
OCLTENSOR_API uint64_t recommended_max_memory(Device device = "ocl");
OCLTENSOR_API uint64_t max_allocated_memory(Device device = "ocl");  // peak since the last reset
OCLTENSOR_API uint64_t reserved_memory(Device device = "ocl");       // taken from the driver
OCLTENSOR_API void reset_peak_memory_stats(Device device = "ocl");
OCLTENSOR_API void reset_accumulated_memory_stats(Device device = "ocl");
OCLTENSOR_API void empty_cache(Device device = "ocl");  // unused memory goes to the driver
// Limit = fraction * recommended_max_memory(), from now on; 0: no limit. TB_E_INVALID outside 0..2.
OCLTENSOR_API void set_per_process_memory_fraction(double fraction, Device device = "ocl");

}  // namespace ocltensor
