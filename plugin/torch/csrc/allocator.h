// Device memory and pinned host memory for PyTorch, from the plugin's pools.
#pragma once

#include <c10/core/Allocator.h>

#include "plugin.h"

namespace torch_ocl {

// The device allocator (a c10::DeviceAllocator, registered for PrivateUse1). allocate() takes memory
// of the current device for its current stream.
c10::Allocator* device_allocator();
// Allocates on a named device, whatever the current one is.
c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes);
c10::Allocator* pinned_allocator();
bool is_pinned(const void* memory);

}  // namespace torch_ocl
