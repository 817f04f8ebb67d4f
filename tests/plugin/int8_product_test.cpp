// Products of int8 by each of the algorithms: all must be exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config.h"
#include "call/proof_numbers.h"
#include "ops/matmul/matmul.h"
#include "plugin/any_call.h"
#include "plugin/nvidia_mma/emulated_units.h"
#include "plugin/only_algorithm.h"

namespace ocltensor::opencl::matmul {
namespace {

struct Case {
  int64_t m, n, k;
  bool a_along_k, b_along_k;
  int64_t a_gap, b_gap;  // between lines
  bool columns;          // the result is contiguous along columns of c
};
constexpr Case kCases[] = {
    {1, 1, 1, true, true, 0, 0, true},         {3, 5, 0, true, true, 0, 0, true},
    {64, 64, 64, true, true, 0, 0, true},      {65, 67, 130, true, true, 14, 30, true},
    {17, 9, 33, false, true, 3, 0, false},     {70, 130, 47, true, false, 1, 14, true},
    {19, 140, 2051, false, false, 0, 5, true}, {2, 300, 1025, true, true, 7, 15, false},
    {16, 64, 4100, true, true, 12, 0, true},
};

// Expects the product in c, and that nothing around it changes.
void expect_exact(const Case& c) {
  const AnyCall any;
  ProofNumbers memory(*any);
  const auto drawn = [&](int64_t count) {
    std::vector<float> list = memory.draw(count, 128);
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i] == 128 || i % 5 == 0) list[i] = -128;
    return list;
  };
  const int64_t a_line = (c.a_along_k ? c.k : c.m) + c.a_gap;
  const int64_t b_line = (c.b_along_k ? c.k : c.n) + c.b_gap;
  const std::vector<float> a = drawn(a_line * (c.a_along_k ? c.m : c.k) + 1);
  const std::vector<float> b = drawn(b_line * (c.b_along_k ? c.n : c.k) + 1);
  Problem p{{DType::Int8, DType::Int8, DType::Int32, DType::Int32}, 1, c.m, c.n, c.k, {}, {}, {}};
  p.a = {memory.upload(a, DType::Int8), 0, c.a_along_k ? a_line : 1, c.a_along_k ? 1 : a_line};
  p.b = {memory.upload(b, DType::Int8), 0, c.b_along_k ? 1 : b_line, c.b_along_k ? b_line : 1};
  const int64_t line = (c.columns ? c.n : c.m) + 3, lines = c.columns ? c.m : c.n;
  const std::vector<float> room(static_cast<size_t>(line * lines), 7);
  p.c = {memory.upload(room, DType::Int32), 0, c.columns ? line : 1, c.columns ? 1 : line};
  run_matmul(*any, p);
  const std::vector<float> got = memory.download(p.c.address, DType::Int32, line * lines);
  for (int64_t i = 0; i < lines; ++i)
    for (int64_t j = 0; j < line; ++j) {
      int64_t want = 7;
      if (j + 3 < line) {
        want = 0;
        const int64_t y = c.columns ? i : j, x = c.columns ? j : i;
        for (int64_t k = 0; k < c.k; ++k)
          want += static_cast<int64_t>(a[static_cast<size_t>(y * p.a.row + k * p.a.col)]) *
                  static_cast<int64_t>(b[static_cast<size_t>(k * p.b.row + x * p.b.col)]);
      }
      // 24 bits are exact in what download() returns: larger sums are compared as rounded
      ASSERT_EQ(got[static_cast<size_t>(i * line + j)], static_cast<float>(want))
          << c.m << " x " << c.n << " x " << c.k << " at " << i << ", " << j;
    }
}

class Int8Products : public nvidia_mma::EmulatedUnits {
 protected:
  static std::string ran() { return matmul_algorithms().last()->id; }
};

TEST_F(Int8Products, AreExactByEveryAlgorithm) {
  open("emulated80");
  if (IsSkipped()) return;
  for (const Case& c : kCases) {
    expect_exact(c);
    EXPECT_EQ(ran(), c.k == 0 ? "matmul.int8_floats" : "matmul.mma_int8");
  }
  config::set("OCLTENSOR_DISABLED_ALGORITHMS", "matmul.mma_int8");
  for (const Case& c : kCases) {
    expect_exact(c);
    EXPECT_EQ(ran(), "matmul.int8_floats") << "no instruction for bytes";
  }
  disable_all_but("matmul.int8_dots");
  for (const Case& c : kCases) {
    expect_exact(c);
    if (c.k != 0) {
      EXPECT_EQ(ran(), "matmul.int8_dots");
    }
  }
}

}  // namespace
}  // namespace ocltensor::opencl::matmul
