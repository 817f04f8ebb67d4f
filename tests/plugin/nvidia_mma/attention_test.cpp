// Attention by mma.sync with the matrix units in OpenCL C (product_test.cpp).
#include "nvidia_mma/attention/attention.h"

#include <gtest/gtest.h>

#include "plugin/any_call.h"
#include "plugin/nvidia_mma/emulated_units.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

class MmaAttention : public EmulatedUnits {};

// Kinds in turn, so that all forms together have every mask and type, with causal and dropout.
attention::Kind kind_of_turn(size_t turn, int64_t gen) {
  return {gen >= 80 && turn % 2 == 1 ? DType::BFloat16 : DType::Float16, turn % 3 == 1,
          turn % 4 >= 2, static_cast<attention::MaskKind>(turn % attention::kMaskKinds)};
}

TEST_P(MmaAttention, EveryFormPassesItsProof) {
  open(GetParam());
  if (IsSkipped()) return;
  const AnyCall any;
  const int64_t gen = generation((*any).caps());
  for (size_t form = 0; form < kForwardForms.size(); ++form) {
    if (gen < 80 && kForwardForms[form].fragments > 1) continue;
    const MmaForward v{kind_of_turn(form, gen), form};
    EXPECT_EQ(wrong_mma_forward(*any, &v), "") << "form " << form;
  }
}

TEST_P(MmaAttention, EveryFormOfBackwardPassesItsProof) {
  open(GetParam());
  if (IsSkipped()) return;
  const AnyCall any;
  const int64_t gen = generation((*any).caps());
  for (size_t form = 0; form < kBackwardForms.size(); ++form) {
    if (gen < 80 && kBackwardForms[form].stages > 1) continue;
    const MmaBackward v{kind_of_turn(form, gen), form};
    EXPECT_EQ(wrong_mma_backward(*any, &v), "") << "form " << form;
  }
}

// Emulated, 90 compiles the same text as 80: they differ in one instruction of real units (mma.h).
INSTANTIATE_TEST_SUITE_P(Generations, MmaAttention, testing::Values("emulated75", "emulated80"));

}  // namespace
}  // namespace ocltensor::opencl::nvidia_mma
