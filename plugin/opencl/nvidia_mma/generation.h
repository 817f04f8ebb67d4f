// What the generations of NVIDIA's GPUs have, as far as kernels with mma.sync differ by it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nvidia/device_facts.h"

namespace ocltensor::opencl::nvidia_mma {

// The kernels' define GENERATION: 75 (float16 alone, no copies to local memory without registers),
// 80 (bfloat16, TF32, such copies) or 90 (TF32 rounded to nearest even); 0: none. Volta (7.0) has
// other fragments (m8n8k4) and no ldmatrix, so that nothing of these kernels would remain.
inline int64_t generation(const Capabilities& caps) {
  const uint32_t wanted = nvidia::facts(caps).mma_generation;
  if (wanted >= 90) return 90;
  if (wanted >= 80) return 80;
  return wanted >= 75 ? 75 : 0;
}

// Bytes of local memory that a kernel may declare. Drivers report 48 KiB and take programs with
// more: from compute capability 8.0 on all that a compute unit has, less 1 KiB for the system and 1
// KiB for alignment. To what a kernel declares NVIDIA's driver adds 128 bytes.
inline int64_t most_local_memory(const Capabilities& caps) {
  const nvidia::DeviceFacts& facts = nvidia::facts(caps);
  constexpr int64_t kAdded = 128;
  const auto reported = static_cast<int64_t>(caps.local_memory) - kAdded;
  if (facts.emulated_mma || caps.local_memory_capped || facts.compute_capability < 80)
    return reported;
  return std::max(reported, static_cast<int64_t>(caps.unit_local_memory) - (2 << 10));
}

// Whether three products of TF32 are faster than plain float32: matrix units that are eight times
// as fast as the float32 units. 8.6 and 8.9 have twice the float32 units, and half or all of 8.0's
// matrix units.
inline bool gains_by_tf32_parts(const Capabilities& caps) {
  const uint32_t wanted = nvidia::facts(caps).mma_generation;
  return wanted == 80 || wanted == 90 || wanted == 100;
}

}  // namespace ocltensor::opencl::nvidia_mma
