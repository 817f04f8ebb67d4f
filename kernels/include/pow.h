// pow for the element type T and its vector: PoCL 3.1's vector pow is wrong in float64 if any lane is 0,
// infinite or NaN (seen: 0.25 ^ 3 = inf beside a zero), so doubles are computed lane by lane.
#ifndef OCLTENSOR_POW_H
#define OCLTENSOR_POW_H
INLINE T __attribute__((overloadable)) pow_(T a, T b) { return pow(a, b); }
#if defined(VECTORS) || defined(REDUCE_VECTORS)
INLINE T16 __attribute__((overloadable)) pow_(T16 a, T16 b) {
  if (sizeof(T) == 4) return pow(a, b);
  T x[16], y[16];
  vstore16(a, 0, x);
  vstore16(b, 0, y);
  for (int i = 0; i < 16; ++i) x[i] = pow(x[i], y[i]);
  return vload16(0, x);
}
#endif
#endif
