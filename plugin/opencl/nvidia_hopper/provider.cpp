// The provider object for NVIDIA's Hopper generation: its devices, and its algorithms in order of
// preference.
#include "provider.h"

#include "attention/attention.h"
#include "conv/convolution.h"
#include "matmul/product.h"
#include "nvidia/device_facts.h"
#include "ptx.h"

namespace ocltensor::opencl {
namespace {

constexpr uint32_t kLargestWorkGroup = 384;  // three warpgroups

// Warpgroup products and tensor copies exist in sm_90a only. A device that has been told to have
// less than Hopper's local memory or work-groups stands for another one.
bool suits(const Capabilities& caps) {
  return nvidia::facts(caps).compute_capability == 90 && !caps.local_memory_capped &&
         caps.max_work_group_size >= kLargestWorkGroup;
}

constexpr const Algorithm* kAlgorithms[] = {
    &nvidia_hopper::kProduct,     &nvidia_hopper::kBf16x6Product,
    &nvidia_hopper::kConvolution, &nvidia_hopper::kBf16x6Convolution,
    &nvidia_hopper::kForward,     &nvidia_hopper::kBf16x6Forward,
    &nvidia_hopper::kBackward,    &nvidia_hopper::kBf16x6Backward};

bool hides_instructions(const Capabilities& caps, const std::string& source) {
  return suits(caps) && nvidia_hopper::ptx::hides_instructions(source);
}
constexpr ProgramFinisher kUncover{hides_instructions, nvidia_hopper::ptx::uncover};

}  // namespace

constinit const Provider kNvidiaHopper{
    .name = "nvidia_hopper",
    .library = "matrix_unit",
    .what = "NVIDIA's matrix units of the Hopper generation, by PTX",
    .suits = suits,
    .lacking = "the device has no matrix units of the Hopper generation",
    .algorithms = kAlgorithms,
    .ask = nvidia::ask,
    .trusts_driver = nvidia::trusts_driver,
    .finisher = &kUncover};

}  // namespace ocltensor::opencl
