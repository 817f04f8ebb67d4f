// What the providers of matrix units know of a device: its architecture, or why it has none.
#pragma once

#include <string>

#include "runtime/driver/capabilities.h"
#include "units.h"

namespace ocltensor::opencl::matrix_units {

struct DeviceFacts {
  const Architecture* architecture = nullptr;
  Kinds kinds = 0;  // that can be used; 0: none
  bool emulated = false;
  // Why a device of a known architecture is refused; lives as long as the process.
  const char* refusal = nullptr;
};

// Nothing for devices that nobody has asked.
const DeviceFacts& facts(const Capabilities& caps);

// What can be told of a device, without its setting; public for tests. Nothing is compiled: a
// driver whose compiler lacks the unit's functions is refused by the kernels' proofs.
DeviceFacts detect(const std::string& extensions, const Capabilities& caps);

// Provider::ask of all of them: the first one's question is the others', too.
void ask(const cl::Device& device, const std::string& extensions, Capabilities& caps);

}  // namespace ocltensor::opencl::matrix_units
