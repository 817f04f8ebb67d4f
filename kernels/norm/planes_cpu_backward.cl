// Gradients of batch and group normalisation for CPU drivers, one statistic after the other: sums over its
// planes, then the input's gradient while the planes are in the cache. With s1, s2 the weighted sums of dy
// and dy * (x - mean) over a statistic (0 unless TRAIN), dx = dy * w * r - r * s1 / n - (x - mean) * r^3 * s2
// / n.
//   COMPUTE; DY, X, OUT; W (weight and its gradients); HAS_WEIGHT; TRAIN
//   BY_CHANNEL: a statistic is a channel's; the weights' gradients are written (HAS_WEIGHT_GRAD,
//   HAS_BIAS_GRAD). Else the sums of each plane are written, for planes_channels.cl
#include "norm_planes.h"

#define G16(i) LOAD16(DY, dy, i)
#define D16(i) (LOAD16(X, x, i) - mean16)
#if TRAIN
#define SLOPE(g, d) ((g) * scale16 - k1 - (d) * k2)
#else
#define SLOPE(g, d) ((g) * scale16)
#endif

ONE_ITEM __kernel void planes_norm(PAIR(dy), PAIR(x), PAIR(mean), PAIR(inverse), PAIR(weight), TARGET(dw),
                                   TARGET(db), TARGET(out), const NormPlanesParams p) {
  __global const STYPE(DY) *grad = AT_CONST(DY, dy_base, dy_offset);
  __global const STYPE(X) *input = AT_CONST(X, x_base, x_offset);
  FOR_EACH_STATISTIC(s) {
    const T r = IN(COMPUTE, inverse, s), count = FROM_BITS(COMPUTE, p.count);
    const T16 mean16 = (T16)(IN(COMPUTE, mean, s));
    T s1 = 0, s2 = 0;
    T16 sums = (T16)((T)0), dots = sums;
    for (long j = 0; j < p.pieces; ++j) {
      const long plane = PLANE(s, j);
      __global const STYPE(DY) *dy = grad + plane * p.inner;
      __global const STYPE(X) *x = input + plane * p.inner;
      long i = 0;
      ADD_PRODUCTS(sums, dots, i, p.inner, G16, D16)
      if (i < p.inner) {
        sums += last_lanes(G16(p.inner - 16), p.inner - i);
        dots += last_lanes(G16(p.inner - 16) * D16(p.inner - 16), p.inner - i);
      }
#if !BY_CHANNEL
      const T sum = sum_lanes(sums), dot = sum_lanes(dots), w = WEIGHT(CHANNEL(s, plane));
      RESULT(COMPUTE, db, plane, sum);
      RESULT(COMPUTE, dw, plane, dot);
      s1 += w * sum;
      s2 += w * dot;
      sums = dots = (T16)((T)0);
#endif
    }
#if BY_CHANNEL
    const T sum = sum_lanes(sums), dot = sum_lanes(dots), w = WEIGHT(s);
    s1 = w * sum;
    s2 = w * dot;
#if HAS_WEIGHT_GRAD
    RESULT(W, dw, s, dot * r);
#endif
#if HAS_BIAS_GRAD
    RESULT(W, db, s, sum);
#endif
#endif
    const T16 k1 = (T16)(r * s1 / count), k2 = (T16)(r * r * r * s2 / count);
    for (long j = 0; j < p.pieces; ++j) {
      const long plane = PLANE(s, j);
      __global const STYPE(DY) *dy = grad + plane * p.inner;
      __global const STYPE(X) *x = input + plane * p.inner;
      __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + plane * p.inner;
      const T16 scale16 = (T16)(r * WEIGHT(CHANNEL(s, plane)));
      const T16 last_dy = G16(p.inner - 16), last = D16(p.inner - 16);  // before anything is written
      long i = 0;
      for (; i + 16 <= p.inner; i += 16) STORE16(OUT, out, i, SLOPE(G16(i), D16(i)));
      if (i < p.inner) STORE16(OUT, out, p.inner - 16, SLOPE(last_dy, last));
    }
  }
}
