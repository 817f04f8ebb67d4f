// When float32 products by parts of their numbers, on matrix units of shorter types, pay.
#include <algorithm>

#include "matmul.h"

namespace ocltensor::opencl::matmul {

// Measured on an H100: products of 32 x 3136 rows with 256 or 64 columns of 64 (or across) take 85
// us with plain float32, 177 with three bfloat16 parts, 113 with two TF32 parts; 24 of 512 x 64 x
// 512 take 35, 53 and 37. 64 matrices of 256 x 3136 times one of 128 x 256 take 370, 339 and 369,
// of 64 x 256 165, 327 and 210; 64 of 512 x 784 times as many of 784 x 128 185, 219 and 173.
// Reading, and writing parts, is most of it, unless the operands stay in a cache: each number has
// to take part in enough products. Parts take three to four launches. On an H200, plain and by
// three bfloat16 parts: 32 x 2048 x 512 14 and 25 us, 128 x 1024 x 1024 19 and 30, 512 cubed 15 and
// 20, 640 cubed 26 and 22.
const char* refuse_float_parts(const Problem& p) {
  constexpr const char* kReason = "parts of numbers would take longer than they save";
  constexpr int64_t kLeastK = 128, kBytesOfCache = int64_t{16} << 20;
  constexpr double kFewest = 0x1.8p27;    // products of all
  constexpr double kLeastProducts = 120;  // of a number
  if (skinny_beats_matrix_units(p) || p.k < kLeastK) return kReason;
  const auto products = static_cast<double>(p.batch * p.m) * static_cast<double>(p.n * p.k);
  if (products < kFewest) return kReason;
  const auto matrices = [&p](const Matrix& m) { return m.batch == 0 ? 1 : p.batch; };
  const int64_t numbers = (matrices(p.a) * p.m + matrices(p.b) * p.n) * p.k;
  const bool is_in_cache = numbers * size_of(DType::Float32) <= kBytesOfCache;
  return !is_in_cache && products < kLeastProducts * static_cast<double>(numbers) ? kReason
                                                                                  : nullptr;
}

}  // namespace ocltensor::opencl::matmul
