// The normal distribution function, for gelu. In float on CPU drivers: 2 to the power of a polynomial that
// approximates the binary logarithm of the smaller tail, a weighted minimax fit to the definition by Lawson's
// iteratively reweighted least squares (C. L. Lawson, 1961); the error is under 1.5e-7, and under 1e-5
// of the smaller tail. Tails beyond 5.7 (6e-9) are 0.
#ifndef OCLTENSOR_NORMAL_H
#define OCLTENSOR_NORMAL_H
#if defined(VECTORS) && defined(FAST_EXP)
#define NORMAL_CDF(V, I)                                               \
  INLINE V OVERLOAD normal_cdf_(V a) {                                 \
    const V x = fabs(a);                                               \
    V s = fma(x, (V)(1.38461033e-7f), (V)(-3.45896888e-6f));           \
    s = fma(s, x, (V)(3.40522238e-5f));                                \
    s = fma(s, x, (V)(-1.38473246e-4f));                               \
    s = fma(s, x, (V)(-2.82888737e-4f));                               \
    s = fma(s, x, (V)(7.28123821e-3f));                                \
    s = fma(s, x, (V)(-5.26605435e-2f));                               \
    s = fma(s, x, (V)(-4.59150434e-1f));                               \
    s = fma(s, x, (V)(-1.15111268f));                                  \
    s = fma(s, x, (V)(-9.99999821e-1f));                               \
    const V t = s + (V)(12582912.0f); /* the low bits hold round(s) */ \
    const V r = s - (t - (V)(12582912.0f));                            \
    V p = fma(r, (V)(1.32764713e-3f), (V)(9.67554096e-3f));            \
    p = fma(p, r, (V)(5.55071309e-2f));                                \
    p = fma(p, r, (V)(2.40221202e-1f));                                \
    p = fma(p, r, (V)(6.93146944e-1f));                                \
    p = fma(p, r, (V)(1.00000012f));                                   \
    const V e = as_##V(as_##I(p) + (as_##I(t) << 23));                 \
    const V tail = (x > (V)(5.7f)) ? (V)(0) : e;                       \
    return (a > (V)(0)) ? (V)(1) - tail : tail;                        \
  }
NORMAL_CDF(float, int)
NORMAL_CDF(float16, int16)
#else
INLINE T OVERLOAD normal_cdf_(T a) { return (T)(0.5f) * ((T)(1) + erf_(a * (T)(SQRT_HALF))); }
#ifdef VECTORS
INLINE T16 OVERLOAD normal_cdf_(T16 a) {
  return (T16)((T)0.5f) * ((T16)((T)1) + erf_(a * (T16)((T)SQRT_HALF)));
}
#endif
#endif
#endif
