// Current device and streams of PyTorch, mapped to the plugin's streams.
#pragma once

#include "plugin.h"

namespace torch_ocl {

c10::DeviceIndex current_device();
// Checked: an index outside 0..device_count()-1 is an error.
void set_current_device(c10::DeviceIndex index);

// This thread's current stream of a device.
c10::Stream current_stream(c10::DeviceIndex index);
// The plugin's handle. The default stream has id 0; pool streams are created on first use and live
// as long as the process.
tb_stream handle_of(const c10::Stream& stream);
inline tb_stream current_handle(c10::DeviceIndex index) { return handle_of(current_stream(index)); }

}  // namespace torch_ocl
