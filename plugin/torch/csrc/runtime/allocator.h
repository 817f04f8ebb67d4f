// Device memory and pinned host memory for PyTorch, from the plugin's pools.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include "plugin.h"

namespace torch_ocl {

// The device allocator (a c10::DeviceAllocator, registered for PrivateUse1). allocate() takes
// memory of the current device for its current stream.
c10::Allocator* device_allocator();
// Allocates on this device, whatever the current one is.
c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes);
// Notes that work of `stream` uses the memory, too: if it is freed, it is kept until that work has
// finished. Memory that is not the plugin's is ignored.
void record_use(const c10::DataPtr& data, const c10::Stream& stream);
// Gives the storage new memory of `bytes` and copies its content as far as it fits, on the current
// stream.
void resize_storage(c10::StorageImpl& storage, size_t bytes);
TORCH_OCL_API tb_memory_stats memory_stats(c10::DeviceIndex index);

// Page-locked host memory (an at::HostAllocator): freed memory returns to the cache only when the
// streams that were recorded for it by record_event() have finished.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* memory);
// Whether an asynchronous copy on the stream has used this pinned memory since it was allocated.
bool is_pinned_memory_in_flight(const void* memory, const c10::Stream& stream);
// Unpins cached host memory whose streams have finished.
TORCH_OCL_API void empty_host_cache();

}  // namespace torch_ocl
