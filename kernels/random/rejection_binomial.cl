// Binomial numbers for row-major IN tensors of counts and probabilities: inversion for a mean below 10, above
// it BTRS (W. Hoermann, "The generation of binomial random variates", 1993).
#include "types.h"
#include "rejection.h"

// Adds up probabilities until they exceed u; as in rejection_poisson.cl. p <= 1/2.
INLINE REAL invert(REAL n, REAL p, REAL u) {
  REAL probability = exp(n * log1p(-p)), k = 0;
  while (u > probability && k < n && (k < n * p || probability > REAL_UNIT * S_(1e-3))) {
    u -= probability;
    probability *= (n - k) / (k + 1) * (p / (1 - p));
    k += 1;
  }
  return k;
}

INLINE REAL log_probability(REAL k, REAL n, REAL p) {
  if (k == 0) return n * log1p(-p);
  if (k == n) return n * log(p);
  return stirling_error(n) - stirling_error(k) - stirling_error(n - k) - deviance(k, n * p) -
         deviance(n - k, n * (1 - p)) - log(2 * S_PI * k * ((n - k) / n)) / 2;
}

// p <= 1/2
INLINE REAL draw_lower(REAL n, REAL p, ulong seed, ulong counter) {
  REAL u[4];
  if (n * p < 10) {
    numbers_of_attempt(seed, counter, 0, u);
    return invert(n, p, u[0]);
  }
  const REAL deviation = sqrt(n * p * (1 - p));
  const REAL b = S_(1.15) + S_(2.53) * deviation, a = S_(0.0248) * b + S_(0.01) * p - S_(0.0873);
  const REAL alpha = (S_(2.83) + S_(5.1) / b) * deviation, inner = S_(0.92) - S_(4.2) / b;
  const REAL centre = n * p + S_(0.5), mode = floor((n + 1) * p);
  REAL log_mode = 0;
  // The mode's probability, then attempts: a second call of log_probability() would take compilers as long
  // as all the rest.
  for (uint step = 0; step <= ATTEMPTS; ++step) {
    REAL k = mode, height = 1;
    if (step > 0) {
      numbers_of_attempt(seed, counter, step - 1, u);
      const REAL side = u[0] - S_(0.5), from_end = S_(0.5) - fabs(side);
      k = floor((2 * a / from_end + b) * side + centre);
      if (from_end >= S_(0.07) && u[1] <= inner) return k;
      if (!(k >= 0 && k <= n)) continue;
      height = u[1] * alpha / (a / (from_end * from_end) + b);
    }
    const REAL log_k = log_probability(k, n, p);
    if (step == 0) log_mode = log_k;
    else if (log(height) <= log_k - log_mode) return k;
  }
  return mode;
}

INLINE REAL draw_binomial(REAL count, REAL p, ulong seed, ulong counter) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1 || isinf(count)) return count;
  if (count != count || p != p) return S_NAN;
  // One call: with two, Intel's compiler takes twice as long.
  const REAL n = floor(count), k = draw_lower(n, p <= S_(0.5) ? p : 1 - p, seed, counter);
  return p <= S_(0.5) ? k : n - k;
}

GROUP __kernel void draw(__global void *out_base, ulong out_offset, __global const void *in_base,
                         ulong in_offset, __global const void *prob_base, ulong prob_offset,
                         const RandomParams p) {
  FOR_EACH(i, p.count, p.per_item) {
    const REAL count = (REAL)LOAD(IN, AT_CONST(IN, in_base, in_offset), i);
    const REAL probability = (REAL)LOAD(IN, AT_CONST(IN, prob_base, prob_offset), i);
    const REAL value = draw_binomial(count, probability, p.seed, p.offset + (ulong)i);
    STORE(IN, AT(IN, out_base, out_offset), i, (CTYPE(IN))value);
  }
}
