// PyTorch's current device and streams, mapped to the plugin's streams.
#pragma once

#include "plugin.h"

namespace torch_ocl {

// Unchecked, for restoring: a negative index changes nothing. Returns the previous device.
TORCH_OCL_API c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept;
// -1 becomes the current device; any other index outside 0..device_count()-1 is an error.
TORCH_OCL_API c10::DeviceIndex checked_index(c10::DeviceIndex index);

// The device that threads begin with if all devices are CPUs and there are so many; else it is 0.
TORCH_OCL_API void prefer_cpu(int index);

// The stream that torch.ocl.warmup() alone uses.
TORCH_OCL_API c10::Stream rehearsal_stream(c10::DeviceIndex index);
// Makes `stream` this thread's current one of its device; returns the previous one.
TORCH_OCL_API c10::Stream exchange_stream(const c10::Stream& stream);
// The plugin's handle of a stream. The default stream has id 0; pool streams are created at first
// use and live as long as the process.
TORCH_OCL_API tb_stream handle_of(const c10::Stream& stream);
inline tb_stream current_handle(c10::DeviceIndex index) { return handle_of(current_stream(index)); }

// Whether any stream of the device has been used. Opens nothing.
TORCH_OCL_API bool is_initialized(c10::DeviceIndex index) noexcept;

}  // namespace torch_ocl
