// Device memory made by CUDA's virtual memory management and imported into OpenCL by its
// descriptor, on NVIDIA's devices.
#pragma once

#include <memory>

#include "runtime/shared/shared_memory.h"

namespace ocltensor::opencl {

// Throws Error with the reason where the device cannot.
std::unique_ptr<SharedMemory> make_cuda_memory(const Capabilities& caps, cl_device_id device,
                                               cl_context context);

}  // namespace ocltensor::opencl
