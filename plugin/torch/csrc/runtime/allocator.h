// Device memory and pinned host memory for PyTorch, from the plugin's pools.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include "plugin.h"

namespace torch_ocl {

// The device allocator (a c10::DeviceAllocator, registered for PrivateUse1). allocate() takes
// memory of the current device for its current stream.
c10::Allocator* device_allocator();
// Allocates on a named device, whatever the current one is.
c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes);
// The memory is used by work of `stream` too: freed memory is kept until that has passed. Memory
// that is not the plugin's is left alone.
void record_use(const c10::DataPtr& data, const c10::Stream& stream);
// Gives the storage new memory of `bytes` and copies what fits, on the current stream.
void resize_storage(c10::StorageImpl& storage, size_t bytes);
tb_memory_stats memory_stats(c10::DeviceIndex index);
// Releases unoccupied cached memory of every device in use.
void empty_cache();

// Page-locked host memory (an at::HostAllocator): comes back to its cache only when the streams
// that record_event() was told have passed.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* memory);
// Has an asynchronous copy on the stream touched this pinned memory since it was allocated?
bool is_pinned_memory_in_flight(const void* memory, const c10::Stream& stream);
// Unpins cached host memory whose streams have passed.
void empty_host_cache();

}  // namespace torch_ocl
