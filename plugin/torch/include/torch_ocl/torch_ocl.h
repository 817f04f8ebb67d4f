// OpenCL devices for C++ programs that use libtorch: what they need beyond PyTorch's own functions.
//
// The library registers the device type "ocl" when it is loaded: torch::Device("ocl"),
// torch::Device("ocl:1") and torch::kPrivateUse1 are its devices; tensors, modules, optimizers,
// autograd, at::Generator, c10::Event and c10::StreamGuard work as on other devices.
//
// A device index is 0 to device_count() - 1, or -1 for the calling thread's current device. Unless
// a function says otherwise it throws c10::Error if there is no such device, and may be called from
// any thread.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "torch_ocl/export.h"

namespace torch_ocl {

// ---- Devices

// Makes sure of the registration. A program that calls nothing else of this library must call it,
// as the linker may leave out a library of which nothing is used. Opens no device. Throws
// c10::Error if another library has taken the one out-of-tree device for which PyTorch has room.
TORCH_OCL_API void initialize();

// Whether at least one device can be used. Never throws.
TORCH_OCL_API bool is_available() noexcept;
// Why none can be used; empty if one can. Never throws.
TORCH_OCL_API std::string unavailable_reason();
// The plugin's text about the drivers and devices that it found or refused. Throws without a
// plugin.
TORCH_OCL_API std::string device_report();
// 0 without plugin, driver or device. Never throws, initialises no more than the driver.
TORCH_OCL_API c10::DeviceIndex device_count() noexcept;
// As the driver says it: "NVIDIA H200", "pthread-...".
TORCH_OCL_API std::string device_name(c10::DeviceIndex device = -1);
// The calling thread's current device: what torch::Device("ocl") without an index means.
TORCH_OCL_API c10::DeviceIndex current_device();
TORCH_OCL_API void set_current_device(c10::DeviceIndex device);

// ---- Streams: work on one stream runs in order. Each thread has a current stream for each device,
// at first the default one.

// (An index without a device is an error of the stream's first use.)
TORCH_OCL_API c10::Stream current_stream(c10::DeviceIndex device = -1);
TORCH_OCL_API c10::Stream default_stream(c10::DeviceIndex device = -1);
// The next of 32 streams of each priority, in turns.
TORCH_OCL_API c10::Stream stream_from_pool(bool high_priority = false,
                                           c10::DeviceIndex device = -1);
// Makes `stream` the calling thread's current stream of its device. c10::StreamGuard does so for a
// scope, and changes the current device, too.
TORCH_OCL_API void set_current_stream(const c10::Stream& stream);
// Waits for all work of all streams of the device. Throws the error of work that failed.
TORCH_OCL_API void synchronize(c10::DeviceIndex device = -1);

// ---- Memory, in bytes

struct MemoryUsage {
  int64_t allocated, peak_allocated;  // in tensors
  int64_t reserved, peak_reserved;    // allocated, and kept for later tensors
  int64_t total;                      // of the device
};
TORCH_OCL_API MemoryUsage memory_usage(c10::DeviceIndex device = -1);
// Sets the peaks to the present values.
TORCH_OCL_API void reset_peak_memory(c10::DeviceIndex device = -1);
// Gives memory that is kept for later tensors back to the driver, on every device in use.
TORCH_OCL_API void empty_cache();

// ---- Random numbers

// Seeds the default generators of all devices; torch::manual_seed() does this, too. Opens no
// device.
TORCH_OCL_API void manual_seed(uint64_t seed);
TORCH_OCL_API const at::Generator& default_generator(c10::DeviceIndex device = -1);

// ---- Settings and diagnosis

// Settings by the names of their environment variables, e.g. "OCLTENSOR_LOG_LEVEL"; all are
// described in src/base/SETTINGS.md. c10::Error for an unknown name or a value that it does not
// take.
TORCH_OCL_API std::string get_setting(const std::string& name);
TORCH_OCL_API void set_setting(const std::string& name, const std::string& value);
// Operators with overload that ran on the CPU instead of the device since the process began, and
// how often each did.
TORCH_OCL_API std::vector<std::pair<std::string, uint64_t>> fallback_counts();

}  // namespace torch_ocl
