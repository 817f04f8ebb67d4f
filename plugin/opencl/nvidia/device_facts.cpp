// Asks NVIDIA's driver for a device's compute capability, and tells what follows from it.
#include "device_facts.h"

#include <algorithm>
#include <string_view>

#include "base/config.h"
#include "ocltensor/error.h"
#include "runtime/driver/caps.h"
#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl::nvidia {
namespace {

// cl_nv_device_attribute_query
constexpr cl_device_info kComputeCapabilityMajor = 0x4000;
constexpr cl_device_info kComputeCapabilityMinor = 0x4001;
constexpr cl_device_info kWarpSize = 0x4003;

cl_uint number(const cl::Device& device, cl_device_info what) {
  cl_uint value = 0;
  check_cl(device.getInfo(what, &value), "clGetDeviceInfo");
  return value;
}

// CUDA's programming guide, "Technical Specifications per Compute Capability": the most shared
// memory of a multiprocessor.
uint64_t unit_local_memory(uint32_t compute_capability) {
  switch (compute_capability) {
    case 70: return 96 << 10;
    case 75: return 64 << 10;
    case 80:
    case 87: return 164 << 10;
    case 86:
    case 89:
    case 120:
    case 121: return 100 << 10;
    case 90:
    case 100:
    case 103: return 228 << 10;
    default: return 0;
  }
}

// OCLTENSOR_NVIDIA_MMA is "emulated80" or the like: the generation after the word.
void choose_mma(DeviceFacts& facts) {
  constexpr std::string_view kEmulated = "emulated";
  const std::string wish = config::get_string(config::Knob::NvidiaMma);
  facts.emulated_mma = wish.starts_with(kEmulated);
  facts.mma_generation = facts.emulated_mma
                             ? static_cast<uint32_t>(std::stoul(wish.substr(kEmulated.size())))
                             : facts.compute_capability;
}

struct Driver {
  uint32_t compute_capability;
  std::string_view version;  // its beginning
};
constexpr Driver kTrustedDrivers[] = {{90, "580."}};  // H100 and H200: tests/README.md

}  // namespace

const DeviceFacts& facts(const Capabilities& caps) {
  static constexpr DeviceFacts kNone;
  const DeviceFacts* found = caps.facts.find<DeviceFacts>();
  return found == nullptr ? kNone : *found;
}

void ask(const cl::Device& device, const std::string& extensions, Capabilities& caps) {
  if (caps.facts.find<DeviceFacts>() != nullptr) return;
  constexpr uint32_t kFirstWithDp4a = 61;
  DeviceFacts facts;
  if (extensions.find(" cl_nv_device_attribute_query ") != std::string::npos) {
    facts.compute_capability =
        10 * number(device, kComputeCapabilityMajor) + number(device, kComputeCapabilityMinor);
    caps.subgroup_sizes = {number(device, kWarpSize)};
  }
  apply_cap(caps, Cap::ComputeCapability, facts.compute_capability);
  // ./run compile-farm, ptxas 12.9 for sm_50 and sm_61: attention's tiles of 64 items spill by all
  // steps at once, and keep all in registers by four and with twice the items.
  constexpr uint32_t kVolta = 70, kFewSteps = 4;
  if (facts.compute_capability != 0 && facts.compute_capability < kVolta)
    caps.steps_at_once = std::min(caps.steps_at_once, kFewSteps);
  choose_mma(facts);
  // Of what it is told to be.
  if (facts.compute_capability != 0)
    caps.unit_local_memory = unit_local_memory(facts.compute_capability);
  if (facts.compute_capability >= kFirstWithDp4a) caps.integer_dot = IntegerDot::Ptx;
  caps.facts.set(facts);
}

bool trusts_driver(const Capabilities& caps) {
  return std::ranges::any_of(kTrustedDrivers, [&](const Driver& driver) {
    return facts(caps).compute_capability == driver.compute_capability &&
           caps.driver_version.starts_with(driver.version);
  });
}

}  // namespace ocltensor::opencl::nvidia
