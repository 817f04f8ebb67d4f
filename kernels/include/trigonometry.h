// sin and cos. In float on CPU drivers, whose own compute lane by lane if an argument is large
// (LANES_IF_LARGE): multiples of pi / 2 are subtracted in three parts (W. J. Cody, W. Waite, 1980), which is
// accurate below 1e5, and keeps the sign of zero, as no part is negative; the error is under 2 ulp. The
// polynomials are minimax fits by Lawson's iteratively reweighted least squares.
#ifndef OCLTENSOR_TRIGONOMETRY_H
#define OCLTENSOR_TRIGONOMETRY_H
INLINE T OVERLOAD sin_(T a) { return sin(a); }
INLINE T OVERLOAD cos_(T a) { return cos(a); }
#ifdef VECTORS
#if defined(FAST_EXP) && defined(LANES_IF_LARGE)
// sin(a + quarters * pi / 2)
INLINE float16 sin_quarters(float16 a, int quarters) {
  // the low bits hold round(2 a / pi)
  const float16 t = fma(a, (float16)(0.636619747f), (float16)(12582912.0f));
  const float16 n = t - (float16)(12582912.0f);
  const float16 r = fma(n, (float16)(-5.39030295e-15f),
                        fma(n, (float16)(-7.54978942e-8f), fma(n, (float16)(-1.57079625f), a)));
  const float16 z = r * r;
  float16 s = fma(z, (float16)(-1.9514958e-4f), (float16)(8.33215844e-3f));
  s = fma(s, z, (float16)(-0.166666552f));
  s = r * fma(s, z, (float16)(1.0f));
  float16 c = fma(z, (float16)(2.44380917e-5f), (float16)(-1.38873642e-3f));
  c = fma(c, z, (float16)(4.16666456e-2f));
  c = fma(c, z * z, fma(z, (float16)(-0.5f), (float16)(1.0f)));
  const int16 q = as_int16(t) + (int16)(quarters);
  const float16 v = (q & (int16)(1)) != (int16)(0) ? c : s;
  return as_float16(as_int16(v) ^ ((q & (int16)(2)) << 30));
}
INLINE T16 OVERLOAD sin_(T16 a) { return sin_quarters(a, 0); }
INLINE T16 OVERLOAD cos_(T16 a) { return sin_quarters(a, 1); }
#else
INLINE T16 OVERLOAD sin_(T16 a) { return sin(a); }
INLINE T16 OVERLOAD cos_(T16 a) { return cos(a); }
#endif
#endif
#endif
