// What C++ programs need beyond PyTorch's own functions; the other functions of the public header
// are those of the folders below.
#include "torch_ocl/torch_ocl.h"

#include "runtime/allocator.h"
#include "runtime/stream.h"

namespace torch_ocl {
namespace {

tb_device_properties properties_of(c10::DeviceIndex device) {
  tb_device_properties properties{};
  properties.struct_size = sizeof properties;
  call_api("device properties", api().device->properties, checked_index(device), &properties);
  return properties;
}

}  // namespace

bool is_available() noexcept { return device_count() > 0 && !is_in_bad_fork(); }

std::string device_name(c10::DeviceIndex device) { return properties_of(device).name; }

void set_current_stream(const c10::Stream& stream) { exchange_stream(stream); }

void synchronize(c10::DeviceIndex device) {
  call_api("synchronize", api().device->synchronize, checked_index(device));
}

MemoryUsage memory_usage(c10::DeviceIndex device) {
  device = checked_index(device);
  const tb_memory_stats stats = memory_stats(device);
  return {stats.allocated_bytes.current, stats.allocated_bytes.peak, stats.reserved_bytes.current,
          stats.reserved_bytes.peak, static_cast<int64_t>(properties_of(device).global_memory)};
}

void reset_peak_memory(c10::DeviceIndex device) {
  call_api("reset statistics", api().memory->reset_peak_stats, checked_index(device));
}

}  // namespace torch_ocl
