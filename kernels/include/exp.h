// exp of vectors. Needs COMPUTE, and FAST_EXP defined if float16 vectors should use the version here, which
// takes half the time of a CPU driver's own: error about 1.5 ulp; NaN and infinities are right; results under
// 2.7e-38 are 0.
#ifndef OCLTENSOR_EXP_H
#define OCLTENSOR_EXP_H
#ifdef FAST_EXP
INLINE float16 exp_16(float16 x) {
  const float16 a = (x > (float16)(89.0f)) ? (float16)(89.0f) : x;
  // the low bits hold round(x / ln 2)
  const float16 t = fma(a, (float16)(1.44269504f), (float16)(12582912.0f));
  const float16 n = t - (float16)(12582912.0f);
  const float16 r = fma(n, (float16)(-1.42860677e-6f), fma(n, (float16)(-0.693145752f), a));
  float16 p = fma(r, (float16)(1.0f / 720.0f), (float16)(1.0f / 120.0f));
  p = fma(p, r, (float16)(1.0f / 24.0f));
  p = fma(p, r, (float16)(1.0f / 6.0f));
  p = fma(p, r, (float16)(0.5f));
  p = fma(p, r, (float16)(1.0f));
  p = fma(p, r, (float16)(1.0f));
  // Half of 2^n, doubled afterwards, because 2^n itself overflows for the largest results.
  const float16 e = p * as_float16((as_int16(t) + 126) << 23) * (float16)(2.0f);
  return (a < (float16)(-86.6f)) ? (float16)(0.0f) : e;
}
#else
INLINE CVEC(COMPUTE) exp_16(CVEC(COMPUTE) x) { return exp(x); }
#endif
#endif
