// The generator's known answers, and the numbers that attention's dropout takes from it.
#include "base/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

using Words = std::array<uint32_t, 4>;

// Known answers of Random123 (kat_vectors): key and counter 0, and all bits set.
TEST(Philox, GivesTheKnownAnswers) {
  Words words;
  philox_rounds(7, 0, 0, 0, words.data());
  EXPECT_EQ(words, (Words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  philox_block(0, 0, words.data());
  EXPECT_EQ(words, (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

// Whether the weights of some matrices are dropped, [matrix][query][key].
class Dropped {
 public:
  static constexpr int64_t kMatrices = 3, kQueries = 200, kKeys = 300;

  explicit Dropped(double p) {
    const uint32_t limit = philox_dropout_limit(p);
    for (int64_t m = 0; m < kMatrices; ++m) {
      const uint64_t first =
          77 + static_cast<uint64_t>(m) * philox_dropout_counters(kQueries, kKeys);
      for (int64_t q = 0; q < kQueries; ++q)
        for (int64_t k = 0; k < kKeys; ++k)
          dropped_.push_back(philox_dropout_keeps(1234, first, kKeys, static_cast<uint64_t>(q),
                                                  static_cast<uint64_t>(k), limit) == 0);
    }
  }
  double mean() const {
    int64_t sum = 0;
    for (const bool one : dropped_) sum += one;
    return static_cast<double>(sum) / static_cast<double>(dropped_.size());
  }
  // The correlation of a weight with the one that is so many queries and keys further.
  double correlation(int64_t queries, int64_t keys) const {
    const double p = mean();
    double sum = 0, count = 0;
    for (int64_t m = 0; m < kMatrices; ++m)
      for (int64_t q = 0; q + queries < kQueries; ++q)
        for (int64_t k = 0; k + keys < kKeys; ++k) {
          sum += (at(m, q, k) - p) * (at(m, q + queries, k + keys) - p);
          ++count;
        }
    return sum / count / (p * (1 - p));
  }

 private:
  double at(int64_t m, int64_t q, int64_t k) const {
    return dropped_[static_cast<size_t>((m * kQueries + q) * kKeys + k)] ? 1 : 0;
  }
  std::vector<bool> dropped_;
};

// Five standard deviations of a mean of so many independent numbers, as the seed is fixed.
constexpr double kCount = 1.0 * Dropped::kMatrices * Dropped::kQueries * Dropped::kKeys;

TEST(Philox, DropoutDropsThePart) {
  for (const double p : {0.001, 0.1, 0.5, 0.9})
    EXPECT_NEAR(Dropped(p).mean(), p, 5 * std::sqrt(p * (1 - p) / kCount)) << p;
  EXPECT_EQ(Dropped(0).mean(), 0);
}

// The lower bits, which weights of a block share, say nothing about the upper ones: where those are
// 25 (p of 0.1 is 25.6 of 256), they are as often as not below a half, for each of the 16 weights.
TEST(Philox, DropoutSharesBitsThatAreIndependentOfTheOthers) {
  constexpr uint64_t kBlocks = 1 << 21;
  std::array<int64_t, 16> met{}, below{};
  for (uint64_t block = 0; block < kBlocks; ++block) {
    Words words;
    philox_rounds(7, 99, block, 0, words.data());
    for (uint32_t b = 0; b < 16; ++b) {
      const uint64_t number = philox_dropout_number(words.data(), b);
      if (number >> 32 != 25) continue;
      ++met[b];
      below[b] += (number & 0xFFFFFFFF) < 0x80000000;
    }
  }
  for (size_t b = 0; b < 16; ++b) {
    const auto count = static_cast<double>(met[b]);
    EXPECT_NEAR(count, kBlocks / 256.0, 5 * std::sqrt(kBlocks / 256.0)) << b;
    EXPECT_NEAR(static_cast<double>(below[b]) / count, 0.5, 5 * 0.5 / std::sqrt(count)) << b;
  }
}

// By less than 10^-4, the deviation of 180,000 is 0.002.
TEST(Philox, DropoutDoesNotCorrelateWeights) {
  const Dropped dropped(0.1);
  const double deviation = 5 / std::sqrt(0.8 * kCount);
  for (const int64_t queries : {0, 1, 7, 8, 9, 16})
    for (const int64_t keys : {0, 1, 4, 7, 8, 9, 16}) {
      if (queries == 0 && keys == 0) continue;
      EXPECT_LT(std::abs(dropped.correlation(queries, keys)), 1e-4 + deviation)
          << queries << " queries and " << keys << " keys apart";
    }
}

}  // namespace
