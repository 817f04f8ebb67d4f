// Draws of which each takes as many random numbers as it needs (src/base/philox.h): element e of a call has
// the counter offset + e to itself, and a block of it per attempt.
#ifndef OCLTENSOR_REJECTION_H
#define OCLTENSOR_REJECTION_H
#include "draw.h"
#define SPECIAL 1
typedef REAL T;
#include "special.h"

// A candidate is accepted more often than 2 times in 3: so many refusals in a row do not occur, except for
// parameters beyond the range of numbers.
#define ATTEMPTS 100

#ifdef cl_khr_fp64
#define REAL_BITS(u) as_double(u)
#else
#define REAL_BITS(u) as_float((uint)(u))
#endif

// The four numbers in (0, 1] of an attempt.
INLINE void numbers_of_attempt(ulong seed, ulong counter, uint attempt, REAL *u) {
  uint w[8];
  const uint c0 = (uint)counter, c1 = (uint)(counter >> 32);
#if WIDE
  philox_block(seed, c0, c1, 2 * attempt, w, w + 1, w + 2, w + 3);
  philox_block(seed, c0, c1, 2 * attempt + 1, w + 4, w + 5, w + 6, w + 7);
  UNROLL for (int k = 0; k < 4; ++k) u[k] = ((REAL)(WORD_AT(w, k) >> 11) + S_(0.5)) * S_(0x1p-53);
#else
  philox_block(seed, c0, c1, attempt, w, w + 1, w + 2, w + 3);
  UNROLL for (int k = 0; k < 4; ++k) u[k] = ((REAL)w[k] + S_(0.5)) * S_(0x1p-32);
#endif
}

// ---- logarithms of probabilities by their saddle points (C. Loader, "Fast and accurate computation of
// binomial probabilities", 2000): the terms are small where the probability is large
// ln(n!) - ln(sqrt(2 pi n) (n / e)^n): Stirling's series (A&S 6.1.41).
INLINE REAL stirling_error(REAL n) {
  if (n < 10) return lgamma(n + 1) - (n + S_(0.5)) * log(n) + n - S_(0.91893853320467274178);
  const REAL i = 1 / (n * n);
  return (S_(1.0 / 12) - i * (S_(1.0 / 360) - i * (S_(1.0 / 1260) - i * (S_(1.0 / 1680) - i / 1188)))) / n;
}
// x ln(x / mean) + mean - x
INLINE REAL deviance(REAL x, REAL mean) { return -x * log1p_minus((mean - x) / x); }
#endif
