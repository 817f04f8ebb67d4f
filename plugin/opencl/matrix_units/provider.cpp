// The provider objects: a unit each, with the same algorithms.
#include "provider.h"

#include "device_facts.h"
#include "matmul/product.h"

namespace ocltensor::opencl {
namespace {

template <matrix_units::Unit unit>
bool suits(const Capabilities& caps) {
  const matrix_units::DeviceFacts& facts = matrix_units::facts(caps);
  return facts.kinds != 0 && facts.architecture->unit == unit;
}

// Why a device that has the unit cannot use it.
template <matrix_units::Unit unit>
const char* refusal(const Capabilities& caps) {
  const matrix_units::DeviceFacts& facts = matrix_units::facts(caps);
  const bool has_it = facts.architecture != nullptr && facts.architecture->unit == unit;
  return has_it ? facts.refusal : nullptr;
}

using matrix_units::Unit;
constexpr const Algorithm* kOfDot[] = {&matrix_units::kDotProduct};
constexpr const Algorithm* kOfMfma[] = {&matrix_units::kMfmaProduct};
constexpr const Algorithm* kOfWmma[] = {&matrix_units::kWmmaProduct};
constexpr const Algorithm* kOfXmx[] = {&matrix_units::kXmxProduct};

}  // namespace

constinit const Provider kAmdDot{.name = "amd_dot",
                                 .library = nullptr,
                                 .what = "AMD's dot products of Vega 20 and RDNA 2",
                                 .suits = suits<Unit::AmdDot>,
                                 .lacking =
                                     "only AMD's gfx906, gfx1011, gfx1012 and gfx103x multiply "
                                     "by dot products",
                                 .refusal = refusal<Unit::AmdDot>,
                                 .algorithms = kOfDot,
                                 .ask = matrix_units::ask};
constinit const Provider kAmdMfma{
    .name = "amd_mfma",
    .library = nullptr,
    .what = "AMD's matrix units of CDNA, by MFMA",
    .suits = suits<Unit::AmdMfma>,
    .lacking = "only AMD's gfx908, gfx90a, gfx94x and gfx950 have MFMA",
    .refusal = refusal<Unit::AmdMfma>,
    .algorithms = kOfMfma,
    .ask = matrix_units::ask};
constinit const Provider kAmdWmma{.name = "amd_wmma",
                                  .library = nullptr,
                                  .what = "AMD's matrix units of RDNA 3 and 4, by WMMA",
                                  .suits = suits<Unit::AmdWmma>,
                                  .lacking = "only AMD's gfx11xx and gfx12xx have WMMA",
                                  .refusal = refusal<Unit::AmdWmma>,
                                  .algorithms = kOfWmma,
                                  .ask = matrix_units::ask};
constinit const Provider kIntelXmx{
    .name = "intel_xmx",
    .library = nullptr,
    .what = "Intel's matrix units, by cl_intel_subgroup_matrix_multiply_accumulate",
    .suits = suits<Unit::IntelXmx>,
    .lacking = "only Intel's Arc and Data Center GPUs have XMX",
    .refusal = refusal<Unit::IntelXmx>,
    .algorithms = kOfXmx,
    .ask = matrix_units::ask};

}  // namespace ocltensor::opencl
