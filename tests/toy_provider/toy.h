// A provider as a vendor would add one, outside the plugin's own files: see
// plugin/opencl/nvidia_hopper/README.md.
#pragma once

#include "call/providers.h"

namespace ocltensor::opencl {

extern const Provider kToy;

}  // namespace ocltensor::opencl
