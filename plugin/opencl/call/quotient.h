// Division by numbers that are the same for all work-items of a launch: a product and a shift in
// the kernel (kernels/include/quotient.h), whose multiplier is found here.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace ocltensor::opencl {

// The type in which a kernel counts elements: uint of numbers below 2^31, ulong of those below
// 2^63.
enum class IndexWidth : uint8_t { Bits32 = 32, Bits64 = 64 };

struct Quotient {
  uint64_t multiplier;
  uint32_t shift;
};

// n / divisor = (2 n * multiplier / 2^32) >> shift for 0 <= n < 2^31, or the same with 2^64 for
// n < 2^63; the divisor is within the same limits, and at least 1.
// Granlund and Montgomery, Division by Invariant Integers using Multiplication (PLDI 1994), theorem
// 4.2: with 2^shift >= divisor, the multiplier m = ceil(2^(N + shift) / divisor) gives
// floor(n / divisor) = floor(m n / 2^(N + shift)) for all n < 2^N. N is one less than the type's
// bits, so that the multiplier of the smallest such shift fits in the type.
inline Quotient quotient_by(int64_t divisor, IndexWidth width) {
  __extension__ using Wide = unsigned __int128;
  const auto d = static_cast<uint64_t>(divisor);
  const auto shift = static_cast<uint32_t>(std::bit_width(d - 1));
  const Wide power = Wide{1} << (static_cast<uint32_t>(width) - 1 + shift);
  return {static_cast<uint64_t>((power + d - 1) / d), shift};
}

// Those by several divisors, as parameters of a kernel have them: `multipliers` and `shifts` are
// arrays of at least as many.
inline void set_quotients(std::span<const int64_t> divisors, IndexWidth width,
                          uint64_t* multipliers, uint32_t* shifts) {
  for (size_t k = 0; k < divisors.size(); ++k) {
    const Quotient q = quotient_by(divisors[k], width);
    multipliers[k] = q.multiplier;
    shifts[k] = q.shift;
  }
}

}  // namespace ocltensor::opencl
