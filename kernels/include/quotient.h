// Division by numbers that are the same for all work-items, as a product and a shift. The kernel's structure
// `p` has both for each divisor (plugin/opencl/call/quotient.h, which has the source of the algorithm).
//   QUOTIENT(uint, n, k)    n / divisor k, of n < 2^31, by multipliers for 32 bits
//   QUOTIENT(ulong, n, k)   of n < 2^63, by multipliers for 64 bits
#ifndef OCLTENSOR_QUOTIENT_H
#define OCLTENSOR_QUOTIENT_H
#include "types.h"

#define QUOTIENT(type, n, k) CAT(quotient_, type)(n, p.multipliers[k], p.shifts[k])
INLINE uint quotient_uint(uint n, ulong multiplier, uint shift) {
  return mul_hi(n << 1, (uint)multiplier) >> shift;
}
INLINE ulong quotient_ulong(ulong n, ulong multiplier, uint shift) {
  return mul_hi(n << 1, multiplier) >> shift;
}
#endif
