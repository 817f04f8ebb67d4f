// The provider object for NVIDIA's matrix units by mma.sync: its devices, and its algorithms in
// order of preference.
#include "provider.h"

#include "attention/attention.h"
#include "conv/convolution.h"
#include "conv/weight.h"
#include "matmul/product.h"
#include "nvidia/resident_groups.h"
#include "quantised/rows.h"

namespace ocltensor::opencl {
namespace {

bool suits(const Capabilities& caps) { return nvidia_mma::generation(caps) != 0; }

constexpr const Algorithm* kAlgorithms[] = {&nvidia_mma::kProduct,
                                            &nvidia_mma::kTf32x3Product,
                                            &nvidia_mma::kInt8Product,
                                            &nvidia_mma::kGroupedProduct,
                                            &nvidia_mma::kGroupedTf32x3,
                                            &nvidia_mma::kConvolution,
                                            &nvidia_mma::kWeight,
                                            &nvidia_mma::kAttentionForward,
                                            &nvidia_mma::kAttentionBackward,
                                            &nvidia_mma::kQuantisedRowsProduct};

}  // namespace

constinit const Provider kNvidiaMma{
    .name = "nvidia_mma",
    .library = nullptr,
    .what = "NVIDIA's matrix units from compute capability 7.5 on, by mma.sync",
    .suits = suits,
    .lacking = "only NVIDIA's devices of compute capability 7.5 and later have mma.sync",
    .algorithms = kAlgorithms,
    .ask = nvidia::ask,
    .trusts_driver = nvidia::trusts_driver,
    .finisher = &nvidia::kResidentGroups};

}  // namespace ocltensor::opencl
