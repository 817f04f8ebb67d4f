// Products of quantised weights by mma.sync with the matrix units in OpenCL C: every format, form
// and number of scales against the host's sums, and the choice among the algorithms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// Of four units 1, 2 or 4 scales, and of x 1, 2 or 4 columns, change with each format.
TEST_F(QuantisedRowsByMma, AreTheHostsSumsForEveryFormat) {
  open("emulated80");
  if (IsSkipped()) return;
  int64_t i = 0;
  for (const WeightFormat& f : weight_formats()) {
    const bool within = f.scales == WeightScales::Within;
    const int64_t spread = within ? 4 : int64_t{1} << i % 3;
    const QuantisedRows v{&f,
                          i % 2 == 0 ? DType::BFloat16 : DType::Float16,
                          spread == 4 ? size_t{3} : size_t{1},
                          1,
                          spread,
                          int64_t{4} >> i % 3};
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
    const QuantisedRows v{format, DType::BFloat16, form, more ? 2 : 1, form == 0 ? 2 : 1, 1};
    EXPECT_EQ(wrong_quantised_rows(call(), &v), "") << kRowsForms[form].use;
  }
}

TEST_F(QuantisedRowsByMma, EverySpecialisationHasAProofOfItsOwn) {
  std::vector<bool> seen(kQuantisedRows, false);
  ASSERT_LE(weight_formats().size(), kMostWeightFormats);
  for (const WeightFormat& f : weight_formats())
    for (const DType type : {DType::Float16, DType::BFloat16})
      for (size_t form = 0; form < kRowsForms.size(); ++form)
        for (const int64_t x_tiles : {1, 2, 4})
          for (const int64_t spread : {1, 2, 4})
            for (const int64_t columns : {1, 2, 4}) {
              const size_t index = QuantisedRows{&f, type, form, x_tiles, spread, columns}.index();
              ASSERT_LT(index, seen.size());
              ASSERT_FALSE(seen[index]);
              seen[index] = true;
            }
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_mma
