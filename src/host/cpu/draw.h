// Drawing numbers by the rules of base/philox.h, in the logical order of an output's elements.
#pragma once

#include <vector>

#include "base/philox.h"
#include "generator.h"
#include "ocltensor/dtype.h"

namespace ocltensor::cpu {

// `count` words of 32 bits, or of 64 (two each, low half first).
std::vector<uint32_t> draw_words(tb_generator generator, int64_t count);
std::vector<uint64_t> draw_wide_words(tb_generator generator, int64_t count);
// Uniform in [0, 1): 53 bits for float64, 24 for every other type.
std::vector<double> draw_uniform(tb_generator generator, int64_t count, DType type);
// The same in (0, 1].
std::vector<double> draw_open_uniform(tb_generator generator, int64_t count, DType type);

}  // namespace ocltensor::cpu
