// The data: 1,797 handwritten digits of 8x8 pixels (UCI "Optical Recognition of Handwritten
// Digits", see third_party_notes). The first half trains, the second half tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace demo {

inline constexpr int kSide = 8;
inline constexpr int kClasses = 10;

struct Digits {
  std::vector<float> pixels;    // count * 64, in 0 .. 1
  std::vector<int64_t> labels;  // count
  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};
struct DataSet {
  Digits train, test;
};

// Throws std::runtime_error if the embedded data is damaged.
DataSet load_digits();

// The digits at `rows`, each moved by up to one pixel in both directions: a larger training set for
// free.
Digits shifted_batch(const Digits& from, const std::vector<int64_t>& rows, std::mt19937_64& random);

}  // namespace demo
