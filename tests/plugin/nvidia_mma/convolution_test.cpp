// Convolutions by mma.sync with the matrix units in OpenCL C (product_test.cpp).
#include "nvidia_mma/conv/convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config.h"
#include "call/proof_numbers.h"
#include "nvidia_mma/conv/weight.h"
#include "nvidia_mma/matmul/product.h"
#include "ops/conv/conv_shape.h"
#include "plugin/any_call.h"
#include "plugin/nvidia_mma/emulated_units.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using testing::HasSubstr;

class MmaConvolutions : public EmulatedUnits {};

// Calls test(kind, tile, number) for every form that a generation has.
template <typename Test>
void for_every_form(int64_t gen, Test&& test) {
  size_t count = 0;
  for (size_t k = 0; k < kMmaKinds; ++k)
    for (size_t tile = 0; tile < kMmaTiles.size(); ++tile) {
      const auto kind = static_cast<MmaKind>(k);
      const MmaTile& form = kMmaTiles[tile];
      if (kind == MmaKind::Tf32x3 || kind == MmaKind::Int8 || form.ahead ||
          !takes_tile(kind, gen, form))
        continue;
      SCOPED_TRACE(testing::Message() << k << ", tile " << tile);
      test(kind, tile, count++);
    }
  EXPECT_EQ(count, gen < 80 ? 3u : 9u);
}

// With one of the ends of each.
TEST_P(MmaConvolutions, EveryFormPassesItsProof) {
  open(GetParam());
  if (IsSkipped()) return;
  const AnyCall any;
  for_every_form(generation((*any).caps()), [&](MmaKind kind, size_t tile, size_t count) {
    const ConvMma v{kind, tile, count % 3 != 2, count % 3 == 1 ? 3 : 1};
    EXPECT_EQ(wrong_mma_convolution(*any, &v), "");
  });
}

TEST_P(MmaConvolutions, EveryFormOfTheWeightsPassesItsProof) {
  open(GetParam());
  if (IsSkipped()) return;
  const AnyCall any;
  for_every_form(generation((*any).caps()), [&](MmaKind kind, size_t tile, size_t count) {
    const WeightMma v{kind, tile, count % 2 == 0 ? 3 : 1};
    EXPECT_EQ(wrong_mma_weight(*any, &v), "");
  });
}
INSTANTIATE_TEST_SUITE_P(Generations, MmaConvolutions, testing::Values("emulated75", "emulated80"));

TEST_F(MmaConvolutions, AreChosenByRule) {
  open("emulated80");
  if (IsSkipped()) return;
  config::set("OCLTENSOR_VERBOSE", "1");
  const AnyCall any;
  const auto printed = [&](DType type, int64_t channels, int64_t window) {
    const ConvParams g = conv::conv_params_of({.batch = 2,
                                               .big = channels,
                                               .small = 64,
                                               .y = 12,
                                               .x = 12,
                                               .window_y = window,
                                               .window_x = window});
    ProofNumbers memory(*any);
    const auto numbers = [&](int64_t count) { return memory.upload(memory.draw(count, 1), type); };
    const conv::Problem p{conv::Direction::Forward,
                          type,
                          numbers(2 * channels * 144),
                          numbers(2 * 64 * 144),
                          numbers(64 * channels * window * window),
                          std::nullopt,
                          g};
    testing::internal::CaptureStderr();
    conv::run_convolution(*any, p);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(printed(DType::Float16, 32, 3), HasSubstr("conv.mma (by rule)"));
  EXPECT_THAT(printed(DType::Float16, 8, 3), HasSubstr("not conv.mma: most of a chunk"));
  EXPECT_THAT(printed(DType::Float16, 32, 1), HasSubstr("not conv.mma: products of images"));
  EXPECT_THAT(printed(DType::Float32, 32, 3), HasSubstr("not conv.mma: TF32 is not allowed"));
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_mma
