// What the providers for NVIDIA's devices know of them.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl::nvidia {

struct DeviceFacts {
  // Times 10: 90 is Hopper; 0: another vendor's device. OCLTENSOR_CAPS lowers it.
  uint32_t compute_capability = 0;
  // OCLTENSOR_NVIDIA_MMA: kernels for matrix units by mma.sync.
  uint32_t mma_generation = 0;  // the compute capability that they are to use; 0: they do not run
  bool emulated_mma = false;    // in OpenCL C, on any device, for tests
};

// Nothing but zeros for devices that nobody has asked.
const DeviceFacts& facts(const Capabilities& caps);

// Asks the device, and says in its portable capabilities what follows: the local memory of a
// compute unit, the dot product of bytes. The second of NVIDIA's providers finds it done.
void ask(const cl::Device& device, const std::string& extensions, Capabilities& caps);

// Whether all kernels of these providers have passed the conformance kit with this driver.
bool trusts_driver(const Capabilities& caps);

}  // namespace ocltensor::opencl::nvidia
