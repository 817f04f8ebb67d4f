// Shifts of QR sweeps: as many pairs as a block has room for, whose sums of powers are the block's
// traces, and which keep real matrices real.
#include "ops/linalg/eig_shifts.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace ocltensor::opencl::linalg {
namespace {

using Complex = std::complex<double>;

TrailingBlock random_block(int64_t rows, bool real, double scale, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  TrailingBlock block{std::vector<Complex>(static_cast<size_t>(rows * rows)), rows, real};
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = std::max<int64_t>(i - 1, 0); j < rows; ++j) {
      const double re = normal(generator);
      const double im = normal(generator);
      block.h[static_cast<size_t>(i * rows + j)] = scale * Complex(re, real ? 0 : im);
    }
  return block;
}

// The traces of the block and of its square.
std::array<Complex, 2> traces(const TrailingBlock& block) {
  const auto at = [&](int64_t i, int64_t j) {
    return block.h[static_cast<size_t>(i * block.rows + j)];
  };
  std::array<Complex, 2> sums{};
  for (int64_t i = 0; i < block.rows; ++i) {
    sums[0] += at(i, i);
    for (int64_t j = 0; j < block.rows; ++j) sums[1] += at(i, j) * at(j, i);
  }
  return sums;
}

TEST(EigShifts, AreEigenvalues) {
  uint32_t seed = 0;
  for (const bool real : {true, false})
    for (const int64_t rows : {2, 4, 6, 16, 32})
      for (const double scale : {1.0, 1e-150, 1e150}) {
        SCOPED_TRACE(testing::Message() << real << ' ' << rows << ' ' << scale);
        const TrailingBlock block = random_block(rows, real, scale, ++seed);
        const std::vector<ShiftPair> pairs = find_shifts(block);
        ASSERT_EQ(static_cast<int64_t>(pairs.size()), rows / 2);
        std::array<Complex, 2> sums{};
        for (const ShiftPair& pair : pairs) {
          const Complex first = pair.s0 + Complex(0, pair.im);
          const Complex second = pair.s1 - Complex(0, pair.im);
          sums[0] += first + second;
          sums[1] += first * first + second * second;
          if (real) {
            EXPECT_EQ(pair.s0.imag(), 0);
            EXPECT_EQ(pair.s1.imag(), 0);
            EXPECT_TRUE(pair.im == 0 || pair.s0 == pair.s1);
          } else {
            EXPECT_EQ(pair.im, 0);
          }
        }
        // What is less than 1e-10 of its neighbours is dropped, once for each eigenvalue.
        const auto want = traces(block);
        const double bound = 1e-9 * static_cast<double>(rows * rows);
        EXPECT_LE(std::abs(sums[0] - want[0]), bound * scale);
        EXPECT_LE(std::abs(sums[1] - want[1]), bound * scale * scale);
      }
}

TEST(EigShifts, EndWhateverTheNumbersAre) {
  for (const bool real : {true, false})
    for (const double x : {0.0, 1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
      const TrailingBlock block{std::vector<Complex>(64, x), 8, real};
      EXPECT_EQ(find_shifts(block).size(), 4U);
      EXPECT_EQ(exceptional_shifts(block).size(), 4U);
    }
}

// The shifts of a cycle's last rows are zeros, with which a sweep changes nothing.
TEST(EigShifts, ExceptionalOnesDiffer) {
  for (const bool real : {true, false}) {
    TrailingBlock block{std::vector<Complex>(16), 4, real};
    for (size_t i = 1; i < 4; ++i) block.h[i * 4 + i - 1] = 1;
    for (const ShiftPair& pair : find_shifts(block)) EXPECT_EQ(std::abs(pair.s0) + pair.im, 0);
    for (const ShiftPair& pair : exceptional_shifts(block)) EXPECT_GT(std::abs(pair.s0), 0.5);
  }
}

}  // namespace
}  // namespace ocltensor::opencl::linalg
