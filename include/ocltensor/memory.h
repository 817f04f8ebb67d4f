// Memory of a device: figures in bytes, limits, the cache. Every function is thread-safe.
#pragma once

#include "ocltensor/device.h"

namespace ocltensor {

using MemoryStats = tb_memory_stats;

OCLTENSOR_API MemoryStats memory_stats(Device device = "ocl");
OCLTENSOR_API uint64_t current_allocated_memory(Device device = "ocl");  // without cached blocks
OCLTENSOR_API uint64_t driver_allocated_memory(Device device = "ocl");   // with cached blocks
OCLTENSOR_API uint64_t recommended_max_memory(Device device = "ocl");
OCLTENSOR_API uint64_t max_allocated_memory(Device device = "ocl");  // peak since the last reset
OCLTENSOR_API uint64_t reserved_memory(Device device = "ocl");
OCLTENSOR_API void reset_peak_memory_stats(Device device = "ocl");
OCLTENSOR_API void reset_accumulated_memory_stats(Device device = "ocl");
OCLTENSOR_API void empty_cache(Device device = "ocl");
// Limit = fraction * recommended_max_memory(), at once; 0 = unlimited. TB_E_INVALID outside 0..2.
OCLTENSOR_API void set_per_process_memory_fraction(double fraction, Device device = "ocl");

}  // namespace ocltensor
