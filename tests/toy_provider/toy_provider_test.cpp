// A provider from outside: its algorithm is asked first, runs, explains itself, and can be
// disabled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/config.h"
#include "call/proof_numbers.h"
#include "ops/matmul/matmul.h"
#include "ops/pointwise/pointwise.h"
#include "plugin/any_call.h"
#include "toy.h"

namespace ocltensor::opencl {
namespace {

using testing::HasSubstr;

class ToyProvider : public testing::Test {
 protected:
  void TearDown() override { config::reset(); }
  // The product of a column of 5 and a row of 7 (`terms` of them); what ran.
  std::string multiply(int64_t terms) {
    const AnyCall any;
    const OpCall& call = *any;
    ProofNumbers numbers(call);
    const std::vector<float> a = numbers.draw(5 * terms, 9), b = numbers.draw(terms * 7, 9);
    matmul::Problem p{.types = DType::Float32,
                      .batch = 1,
                      .m = 5,
                      .n = 7,
                      .k = terms,
                      .a = {numbers.upload(a, DType::Float32), 0, terms, 1},
                      .b = {numbers.upload(b, DType::Float32), 0, 7, 1},
                      .c = {numbers.upload(std::vector<float>(35, 77), DType::Float32), 0, 7, 1}};
    matmul::run_matmul(call, p);
    const std::vector<float> c = numbers.download(p.c.address, DType::Float32, 35);
    for (int64_t i = 0; i < 35; ++i) {
      float want = 0;
      for (int64_t k = 0; k < terms; ++k)
        want += a[static_cast<size_t>(i / 7 * terms + k)] * b[static_cast<size_t>(k * 7 + i % 7)];
      EXPECT_EQ(c[static_cast<size_t>(i)], want) << i;
    }
    return matmul::matmul_algorithms().last()->id;
  }
};

TEST_F(ToyProvider, ItsAlgorithmIsAskedBeforeThePortableOnes) {
  EXPECT_STREQ(matmul::matmul_algorithms().algorithms().front()->id, "matmul.toy_outer");
  EXPECT_EQ(multiply(1), "matmul.toy_outer");
  EXPECT_NE(multiply(2), "matmul.toy_outer");
}

// c = relu(2 * scale[n] * a[m] * b[n] + bias[n]): what a provider of quantised weights brings.
TEST_F(ToyProvider, ProductsOfInt8WithScalesHaveTheSharedEnd) {
  const AnyCall any;
  const OpCall& call = *any;
  ProofNumbers numbers(call);
  const std::vector<float> a = numbers.draw(5, 9), b = numbers.draw(7, 9),
                           bias = numbers.draw(7, 9);
  const std::vector<float> scales{0.5, 2, -1, 4, 0.25, 1, 8};  // exact products
  matmul::Problem p{.types = {DType::Float32, DType::Int8, DType::Float32, DType::Float32},
                    .batch = 1,
                    .m = 5,
                    .n = 7,
                    .k = 1,
                    .a = {numbers.upload(a, DType::Float32), 0, 1, 1},
                    .b = {numbers.upload(b, DType::Int8), 0, 7, 1},
                    .c = {numbers.upload(std::vector<float>(35, 77), DType::Float32), 0, 7, 1}};
  p.end.alpha = 2;
  p.end.add({numbers.upload(bias, DType::Float32), 0, 0, 1});
  p.end.scales = {DType::Float32, {numbers.upload(scales, DType::Float32), 0, 0, 1}};
  p.end.formula = &pointwise::formula_of("relu.out");
  matmul::run_matmul(call, p);
  EXPECT_STREQ(matmul::matmul_algorithms().last()->id, "matmul.toy_scaled");
  const std::vector<float> c = numbers.download(p.c.address, DType::Float32, 35);
  for (size_t i = 0; i < 35; ++i) {
    const size_t n = i % 7;
    EXPECT_EQ(c[i], std::max(0.0f, 2 * scales[n] * a[i / 7] * b[n] + bias[n])) << i;
  }
}

TEST_F(ToyProvider, ChoicesSayWhatItDidAndWhyNot) {
  config::set("OCLTENSOR_VERBOSE", "1");
  testing::internal::CaptureStderr();
  multiply(1);
  multiply(2);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("matmul.toy_outer (by rule); provider toy;"));
  EXPECT_THAT(text, HasSubstr("not matmul.toy_outer: not an outer product"));
}

TEST_F(ToyProvider, SettingsKnowIt) {
  config::set("OCLTENSOR_DISABLED_PROVIDERS", "toy");
  EXPECT_NE(multiply(1), "matmul.toy_outer");
  EXPECT_THROW(check_providers("toys"), Error);
  EXPECT_EQ(missing_provider(kToy), nullptr);
}

}  // namespace
}  // namespace ocltensor::opencl
