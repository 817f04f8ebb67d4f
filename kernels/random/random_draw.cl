// Random numbers, one per element of a row-major OUT tensor. VALUE names the distribution (a function below),
// IN is the type of the tensor of probabilities, if it takes one. See draw.h.
#include "types.h"
#include "draw.h"
#include "faults.h"

#define ARGUMENTS \
  const RandomParams p, const WORD w, const long i, __global const STYPE(IN) *in, FAULT_PARAMETERS

// In [from, from + range): p = from, range, the rounded upper bound (NaN: none) and what replaces it.
#define rounded_f32(v) (v)
#define rounded_f64(v) (v)  // integers only
INLINE float rounded_bf16(float v) {
  const uint u = as_uint(v);
  return isnan(v) ? v : as_float((u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u);
}
INLINE float rounded_f16(float v) {
  ushort bits;
  vstore_half_rte(v, 0, (half *)&bits);
  return vload_half(0, (const half *)&bits);
}
#if OUT_FLOATING
INLINE CTYPE(OUT) uniform(ARGUMENTS) {
  const CTYPE(OUT) from = FROM_BITS(OUT, p.p[0]), range = FROM_BITS(OUT, p.p[1]);
#if WIDE
  const double v = (double)UNIT_BITS(w) * UNIT_SCALE * range + from;
#else
  const float v = CAT(rounded_, OUT)((float)UNIT_BITS(w) * UNIT_SCALE * range + from);
#endif
  return v >= FROM_BITS(OUT, p.p[2]) ? FROM_BITS(OUT, p.p[3]) : v;
}
#endif

// p = lambda, as REAL.
#ifdef cl_khr_fp64
#define REAL_BITS(u) as_double(u)
#else
#define REAL_BITS(u) as_float((uint)(u))
#endif
INLINE REAL exponential(ARGUMENTS) {
  // A logarithm of 1 would make the result -0, which the distribution does not have (philox.h).
  return fmax(-log((REAL)(UNIT_BITS(w) + 1) * REAL_UNIT), REAL_UNIT) / REAL_BITS(p.p[0]);
}

// p = the number of units below the probability: exact in integers.
INLINE uchar bernoulli(ARGUMENTS) { return UNIT_BITS(w) < (WORD)p.p[0]; }
INLINE uchar bernoulli_tensor(ARGUMENTS) {
  const REAL probability = (REAL)LOAD(IN, in, i);
  if (!(probability >= 0 && probability <= 1)) report_fault(faults, fault_site, 0, 0);
  return (REAL)UNIT_BITS(w) * REAL_UNIT < probability;
}

// p = range (0: all of 64 bits), from.
INLINE long integers(ARGUMENTS) {
#if WIDE
  return (long)(p.p[1] + (p.p[0] == 0 ? w : w % p.p[0]));
#else
  return (long)(p.p[1] + (p.p[0] >> 32 ? w : w % (uint)p.p[0]));
#endif
}

GROUP __kernel void draw(__global void *out_base, ulong out_offset, __global const void *in_base,
                         ulong in_offset, FAULT_PARAMETERS, const RandomParams p) {
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
  __global const STYPE(IN) *in = AT_CONST(IN, in_base, in_offset);
  DRAW(p, i, w, STORE(OUT, out, i, TO(OUT, VALUE(p, w, i, in, faults, fault_site)));)
}
