// When float32 products by parts of their numbers, on matrix units of shorter types, pay.
#include <algorithm>

#include "matmul.h"

namespace ocltensor::opencl::matmul {

// Measured on an H100: products of 32 x 3136 rows with 256 or 64 columns of 64 (or across) take 85
// us with plain float32, 177 with three bfloat16 parts, 113 with two TF32 parts; 24 of 512 x 64 x
// 512 take 35, 53 and 37. Reading, and writing parts, is most of it, unless the operands stay in a
// cache.
const char* refuse_float_parts(const Problem& p) {
  constexpr const char* kReason = "parts of numbers would take longer than they save";
  constexpr int64_t kLeastK = 128, kNarrow = 128, kBytesOfCache = int64_t{16} << 20;
  if (skinny_beats_matrix_units(p) || p.k < kLeastK) return kReason;
  const auto products = static_cast<double>(p.batch * p.m) * static_cast<double>(p.n * p.k);
  if (products < 0x1p25) return kReason;
  const int64_t bytes = p.batch * (p.m + p.n) * p.k * 4;
  return std::min(p.m, p.n) <= kNarrow && bytes > kBytesOfCache ? kReason : nullptr;
}

}  // namespace ocltensor::opencl::matmul
