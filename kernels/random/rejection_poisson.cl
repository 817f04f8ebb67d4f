// Poisson numbers for a row-major IN tensor of rates: inversion below 10, above it PTRS (W. Hoermann, "The
// transformed rejection method for generating Poisson random variables", 1993).
#include "types.h"
#include "rejection.h"
#include "faults.h"

// Adds up probabilities until they exceed u. Beyond the mode no further than to the smallest u(n): rounding
// errors of the sum must not lead into the tail.
INLINE REAL invert(REAL rate, REAL u) {
  REAL probability = exp(-rate), k = 0;
  while (u > probability && (k < rate || probability > REAL_UNIT * S_(1e-3))) {
    u -= probability;
    k += 1;
    probability *= rate / k;
  }
  return k;
}

INLINE REAL log_probability(REAL k, REAL rate) {
  if (k == 0) return -rate;
  return -stirling_error(k) - deviance(k, rate) - log(2 * S_PI * k) / 2;
}

INLINE REAL draw_poisson(REAL rate, ulong seed, ulong counter) {
  REAL u[4];
  if (rate == 0 || isinf(rate)) return rate;
  if (rate < 10) {
    numbers_of_attempt(seed, counter, 0, u);
    return invert(rate, u[0]);
  }
  const REAL b = S_(0.931) + S_(2.53) * sqrt(rate), a = S_(0.02483) * b - S_(0.059);
  const REAL inverse_alpha = S_(1.1239) + S_(1.1328) / (b - S_(3.4));
  const REAL inner = S_(0.9277) - S_(3.6224) / (b - 2);
  for (uint attempt = 0; attempt < ATTEMPTS; ++attempt) {
    numbers_of_attempt(seed, counter, attempt, u);
    const REAL side = u[0] - S_(0.5), from_end = S_(0.5) - fabs(side);
    const REAL k = floor((2 * a / from_end + b) * side + rate + S_(0.43));
    if (from_end >= S_(0.07) && u[1] <= inner) return k;
    if (!(k >= 0) || (from_end < S_(0.013) && u[1] > from_end)) continue;
    const REAL height = u[1] * inverse_alpha / (a / (from_end * from_end) + b);
    if (log(height) <= log_probability(k, rate)) return k;
  }
  return floor(rate);
}

GROUP __kernel void draw(__global void *out_base, ulong out_offset, __global const void *in_base,
                         ulong in_offset, FAULT_PARAMETERS, const RandomParams p) {
  FOR_EACH(i, p.count, p.per_item) {
    const REAL rate = (REAL)LOAD(IN, AT_CONST(IN, in_base, in_offset), i);
    if (!(rate >= 0)) report_fault(faults, fault_site, i, 0);
    const REAL value = rate >= 0 ? draw_poisson(rate, p.seed, p.offset + (ulong)i) : S_NAN;
    STORE(IN, AT(IN, out_base, out_offset), i, (CTYPE(IN))value);
  }
}
