// Gamma(alpha, 1) numbers for a row-major IN tensor of alphas: G. Marsaglia, W. W. Tsang, "A simple method
// for generating gamma variables", 2000, with their boost for alpha < 1. p = the smallest number of type IN,
// as REAL: it replaces smaller ones, so that logarithms are finite.
#include "types.h"
#include "rejection.h"

INLINE REAL draw_gamma(REAL alpha, ulong seed, ulong counter) {
  if (!(alpha > 0)) return alpha == 0 ? 0 : S_NAN;
  if (isinf(alpha)) return alpha;
  const REAL d = (alpha < 1 ? alpha + 1 : alpha) - S_(1.0 / 3), c = 1 / sqrt(9 * d);
  REAL scale = d;
  for (uint attempt = 0; attempt < ATTEMPTS; ++attempt) {
    REAL u[4];
    numbers_of_attempt(seed, counter, attempt, u);
    if (attempt == 0 && alpha < 1) scale *= exp(log(u[3]) / alpha);
    const REAL x = sqrt(-2 * log(u[0])) * cos(2 * S_PI * u[1]), y = 1 + c * x, v = y * y * y;
    if (y <= 0) continue;
    const REAL xx = x * x;
    if (u[2] < 1 - S_(0.0331) * xx * xx || log(u[2]) < xx / 2 + d * (1 - v + log(v))) return scale * v;
  }
  return scale;
}

GROUP __kernel void draw(__global void *out_base, ulong out_offset, __global const void *in_base,
                         ulong in_offset, const RandomParams p) {
  const REAL least = REAL_BITS(p.p[0]);
  FOR_EACH(i, p.count, p.per_item) {
    const REAL alpha = (REAL)LOAD(IN, AT_CONST(IN, in_base, in_offset), i);
    const REAL value = draw_gamma(alpha, p.seed, p.offset + (ulong)i);
    STORE(IN, AT(IN, out_base, out_offset), i, (CTYPE(IN))(value < least ? least : value));
  }
}
