// Products of quantised weights by mma.sync with the matrix units in OpenCL C: every format, form
// and number of scales against the host's sums, and the choice among the algorithms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "call/proof_numbers.h"
#include "nvidia_mma/quantised/rows.h"
#include "plugin/any_call.h"
#include "plugin/nvidia_mma/emulated_units.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

class QuantisedRowsByMma : public EmulatedUnits {
 protected:
  void open(const char* emulated) {
    EmulatedUnits::open(emulated);
    call_.emplace();
  }
  const OpCall& call() { return **call_; }

 private:
  std::optional<AnyCall> call_;
};

// Of four units 1, 2 or 4 scales, or one for all, and of x 1, 2 or 4 columns, change with each
// format, as does whether every step has all of its units.
TEST_F(QuantisedRowsByMma, AreTheHostsSumsForEveryFormat) {
  open("emulated80");
  if (IsSkipped()) return;
  int64_t i = 0;
  for (const WeightFormat& f : weight_formats()) {
    const bool within = f.scales == WeightScales::Within;
    const int64_t spread = within ? 4 : int64_t{1} << i % 3;
    const bool rows = spread == 1 && f.layout != WeightLayout::Flat && i % 2 == 0;
    const QuantisedRows v{.format = &f,
                          .type = i % 2 == 0 ? DType::BFloat16 : DType::Float16,
                          .form = spread == 4 ? size_t{3} : size_t{1},
                          .x_tiles = 1,
                          .spread = spread,
                          .x_columns = int64_t{4} >> i % 3,
                          .same_scales = rows,
                          .all_units = i % 4 < 2};
    EXPECT_EQ(wrong_quantised_rows(call(), &v), "")
        << f.name << ", spread " << spread << ", columns " << v.x_columns;
    ++i;
  }
}

TEST_F(QuantisedRowsByMma, AreTheHostsSumsForEveryForm) {
  open("emulated80");
  if (IsSkipped()) return;
  const WeightFormat* format = find_weight_format("int4");
  for (size_t form = 0; form < kRowsForms.size(); ++form) {
    const bool more = kRowsForms[form].w_tiles > 1;
    const QuantisedRows v{.format = format,
                          .type = DType::BFloat16,
                          .form = form,
                          .x_tiles = more ? 2 : 1,
                          .spread = form == 0 ? 2 : 1,
                          .x_columns = 1,
                          .all_units = form % 2 == 1};
    EXPECT_EQ(wrong_quantised_rows(call(), &v), "") << kRowsForms[form].use;
  }
}

// Zeros that float16 cannot hold, as floats; codes that it cannot hold are left to others.
TEST_F(QuantisedRowsByMma, ZerosAndCodesMayBeBeyondFloat16) {
  open("emulated80");
  if (IsSkipped()) return;
  constexpr int64_t kN = 16, kK = 96, kGroup = 32;
  constexpr float kZero = 7e4F, kScale = 0x1p-10F;
  ProofNumbers numbers(call());
  std::vector<float> q = numbers.draw(kN * kK, 100), of_x = numbers.draw(kK, 8);
  for (float& x : of_x) x /= 64;
  const auto groups = static_cast<size_t>(kN * kK / kGroup);
  const LocalTensor bytes(numbers.upload(q, DType::Int8), DType::Int8, Dims{kN, kK});
  const LocalTensor scale(numbers.upload(std::vector<float>(groups, kScale), DType::Float32),
                          DType::Float32, Dims{kN, kK / kGroup});
  const LocalTensor zero(numbers.upload(std::vector<float>(groups, kZero), DType::Float32),
                         DType::Float32, Dims{kN, kK / kGroup});
  const LocalTensor x(numbers.upload(of_x, DType::Float16), DType::Float16, Dims{1, kK});
  const LocalTensor out(numbers.upload(std::vector<float>(kN, 7), DType::Float16), DType::Float16,
                        Dims{1, kN});
  const QuantisedWeight weight{
      find_weight_format("int8_zeros"), kN, kK, kGroup, bytes, scale.view(), zero.view()};
  const quantised::Product p{weight, x, out, std::nullopt};
  {
    Plan plan;
    ASSERT_EQ(kQuantisedRowsProduct.plan(call(), p, plan), nullptr);
    kQuantisedRowsProduct.run(call(), p, plan);
  }
  const std::vector<float> got = numbers.download(out.view().address(), DType::Float16, kN);
  for (int64_t n = 0; n < kN; ++n) {
    double want = 0, size = 0;
    for (int64_t k = 0; k < kK; ++k) {
      const double term = (static_cast<double>(q[static_cast<size_t>(n * kK + k)]) - kZero) *
                          kScale * of_x[static_cast<size_t>(k)];
      want += term;
      size += std::abs(term);
    }
    EXPECT_NEAR(got[static_cast<size_t>(n)], want, 0x1p-11 * std::abs(want) + 0x1p-20 * size) << n;
  }
  quantised::Product codes = p;
  codes.weight.format = find_weight_format("codes");
  Plan plan;
  EXPECT_STREQ(kQuantisedRowsProduct.plan(call(), codes, plan), "codes may be beyond float16");
}

TEST_F(QuantisedRowsByMma, EverySpecialisationHasAProofOfItsOwn) {
  std::vector<bool> seen(kQuantisedRows, false);
  ASSERT_LE(weight_formats().size(), kMostWeightFormats);
  const auto expect_new = [&seen](const QuantisedRows& v) {
    ASSERT_LT(v.index(), seen.size());
    ASSERT_FALSE(seen[v.index()]);
    seen[v.index()] = true;
  };
  constexpr std::pair<int64_t, int64_t> kOfX[] = {{1, 1}, {1, 2}, {1, 4}, {2, 1}, {4, 1}};
  constexpr std::pair<int64_t, bool> kScales[] = {{1, true}, {1, false}, {2, false}, {4, false}};
  for (const WeightFormat& f : weight_formats())
    for (const DType type : {DType::Float16, DType::BFloat16})
      for (size_t form = 0; form < kRowsForms.size(); ++form)
        for (const auto& [tiles, columns] : kOfX)
          for (const auto& [spread, same] : kScales)
            for (const bool all : {false, true})
              expect_new({&f, type, form, tiles, spread, columns, same, all});
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_mma
