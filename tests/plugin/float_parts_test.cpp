// Which float32 products are made by parts of their numbers.
#include <gtest/gtest.h>

#include "ops/matmul/matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

bool pays(int64_t batch, int64_t m, int64_t n, int64_t k, bool shares_a = false) {
  Problem p{DType::Float32, batch, m, n, k, {}, {}, {}};
  p.a = {0, shares_a ? 0 : m * k, k, 1};
  p.b = {0, k * n, n, 1};
  p.c = {0, m * n, n, 1};
  return refuse_float_parts(p) == nullptr;
}

TEST(FloatParts, PayWhereNumbersAreReadOften) {
  EXPECT_TRUE(pays(1, 1024, 1024, 1024));
  EXPECT_TRUE(pays(1, 4096, 192, 4096));
  EXPECT_FALSE(pays(1, 1024, 1024, 64)) << "short sums";
  EXPECT_FALSE(pays(1, 128, 128, 512)) << "little to multiply";
  EXPECT_FALSE(pays(1, 512, 512, 512)) << "little to multiply";
  EXPECT_FALSE(pays(1, 32, 512, 2048)) << "a step of an LSTM";
  EXPECT_TRUE(pays(1, 640, 640, 640));
  EXPECT_FALSE(pays(1, 8, 65536, 4096)) << "a few rows";
}

// The operands of these are beyond a cache: parts would be written and read again.
TEST(FloatParts, DoNotPayForLongNarrowProducts) {
  EXPECT_FALSE(pays(1, 100352, 64, 256));
  EXPECT_FALSE(pays(32, 64, 3136, 256));
  EXPECT_FALSE(pays(24, 512, 64, 512));
  EXPECT_TRUE(pays(1, 1024, 256, 1024)) << "in a cache";
  EXPECT_TRUE(pays(32, 256, 3136, 256)) << "wide";
  EXPECT_FALSE(pays(64, 512, 128, 784));
  EXPECT_FALSE(pays(64, 128, 512, 784));
  EXPECT_TRUE(pays(64, 128, 512, 784, true)) << "one matrix for all";
}

}  // namespace
}  // namespace ocltensor::opencl::matmul
