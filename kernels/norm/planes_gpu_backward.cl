// Gradients of batch and group normalisation for GPUs. With s1, s2 the weighted sums of dy and dy * (x -
// mean) over a statistic (0 unless TRAIN), dx = dy * w * r - r * s1 / n - (x - mean) * r^3 * s2 / n.
//   COMPUTE; DY, X, OUT; W (weight and its gradients), S (mean, and inverse or with FROM_VARIANCE
//   variance); HAS_WEIGHT, HAS_WEIGHT_GRAD, HAS_BIAS_GRAD
//   BY_CHANNEL: a statistic is a channel's, else run j of it is channel j of its group
//   MERGE: `sums` wrote those of the pieces of each plane to partials ([sums | dots], one statistic after the
//   other); else a statistic is one piece, whose lanes do everything
#include "norm_gpu.h"

#define MEAN(s) IN(S, mean, (s) * p.mean_stride)
#if FROM_VARIANCE
#define INVERSE(s) ((T)1 / sqrt(IN(S, inverse, (s) * p.variance_stride) + FROM_BITS(COMPUTE, p.eps)))
#else
#define INVERSE(s) IN(S, inverse, (s) * p.variance_stride)
#endif

typedef struct {
  T sum, dot;
} Sums;

INLINE Sums sweep(NormElementsParams p, __global const STYPE(DY) *dy, __global const STYPE(X) *x, T mean,
                  INDEX e, INDEX end) {
  Sums all = {0, 0};
  Walk w = walk_from(p, e);
  while (w.e < end) {
    INDEX at[BLOCK], run[BLOCK];
    T g[BLOCK][VEC], v[BLOCK][VEC], sum = 0, dot = 0;
    const int n = next_block(p, &w, end, at, run);
    EACH_VECTOR {
      LOADV(DY, dy, at[k], g[k]);
      LOADV(X, x, at[k], v[k]);
    }
    EACH_VECTOR EACH_ELEMENT {
      sum += k < n ? g[k][j] : (T)0;
      dot += k < n ? g[k][j] * (v[k][j] - mean) : (T)0;
    }
    all.sum += sum;
    all.dot += dot;
  }
  return all;
}

#if MERGE
SIZED __kernel void sums(PAIR(dy), PAIR(x), PAIR(mean), TARGET(partials), const NormElementsParams p) {
  PLACE
  Sums s = sweep(p, AT_UNIT(DY, dy), AT_UNIT(X, x), MEAN(unit / (INDEX)p.sharing), first + lane, end);
  s.sum = sum_of_lanes(shared, s.sum, id, lane, lanes, 1);
  s.dot = sum_of_lanes(shared, s.dot, id, lane, lanes, 1);
  if (lane == 0 && here) {
    __global STYPE(COMPUTE) *partials = AT(COMPUTE, partials_base, partials_offset);
    partials[unit * pieces + piece] = s.sum;
    partials[(units + unit) * pieces + piece] = s.dot;
  }
}
#endif

SIZED __kernel void planes_gradient(PAIR(dy), PAIR(x), PAIR(mean), PAIR(inverse), PAIR(weight),
                                    PAIR(partials), TARGET(dw), TARGET(db), TARGET(out),
                                    const NormElementsParams p) {
  PLACE
  __global const STYPE(DY) *dy = AT_UNIT(DY, dy);
  __global const STYPE(X) *x = AT_UNIT(X, x);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + unit * (INDEX)p.unit_step * VEC;
  const T center = MEAN(unit), r = INVERSE(unit);
  const long channel = (long)unit * p.unit_channels % p.channels;
  T weight = WEIGHT(channel);
#if MERGE
  // Each plane has its part of the sums.
  __global const STYPE(COMPUTE) *sums = AT_CONST(COMPUTE, partials_base, partials_offset);
  __global const STYPE(COMPUTE) *dots = sums + units * (INDEX)p.partials;
  Sums s = {0, 0};
  if (here)
    for (INDEX k = lane; k < p.partials; k += lanes) {
      const INDEX i = unit * (INDEX)p.partials + k;
      const T factor = BY_CHANNEL ? (T)1 : WEIGHT(channel + k / (INDEX)p.plane_partials);
      s.sum += factor * sums[i];
      s.dot += factor * dots[i];
    }
#else
  Sums s = sweep(p, dy, x, center, first + lane, end);
#endif
  s.sum = sum_of_lanes(shared, s.sum, id, lane, lanes, 1);
  s.dot = sum_of_lanes(shared, s.dot, id, lane, lanes, 1);
#if BY_CHANNEL
  if (lane == 0 && piece == 0 && here) {
#if HAS_WEIGHT_GRAD
    RESULT(W, dw, unit, s.dot * r);
#endif
#if HAS_BIAS_GRAD
    RESULT(W, db, unit, s.sum);
#endif
  }
  s.sum *= weight;
  s.dot *= weight;
#elif HAS_WEIGHT_GRAD || HAS_BIAS_GRAD
  const long c = (long)get_group_id(0) * GROUP + id;
  if (get_group_id(0) < p.weight_groups && c < p.channels) {
    const long planes = p.units * p.unit_channels;
    T weight_sum = 0, bias_sum = 0;
    for (long plane = c; plane < planes; plane += p.channels) {
      const T inverse = INVERSE(plane / p.unit_channels);
      for (long i = plane * p.plane_partials; i < (plane + 1) * p.plane_partials; ++i) {
        weight_sum += dots[i] * inverse;
        bias_sum += sums[i];
      }
    }
#if HAS_WEIGHT_GRAD
    RESULT(W, dw, c, weight_sum);
#endif
#if HAS_BIAS_GRAD
    RESULT(W, db, c, bias_sum);
#endif
  }
#endif
  const T count = FROM_BITS(COMPUTE, p.count), k1 = r * s.sum / count, k2 = r * r * r * s.dot / count;
  T scale = r * weight;
  Walk w = walk_from(p, first + lane);
  while (w.e < end) {
    INDEX at[BLOCK], run[BLOCK];
    T g[BLOCK][VEC], v[BLOCK][VEC];
    const int n = next_block(p, &w, end, at, run);
    EACH_VECTOR {
      LOADV(DY, dy, at[k], g[k]);
#if TRAIN
      LOADV(X, x, at[k], v[k]);
#endif
    }
    EACH_VECTOR if (k < n) {
#if !BY_CHANNEL
      scale = r * WEIGHT(channel + run[k]);
#endif
#if TRAIN
      EACH_ELEMENT v[k][j] = g[k][j] * scale - k1 - (v[k][j] - center) * k2;
#else
      EACH_ELEMENT v[k][j] = g[k][j] * scale;
#endif
      STOREV(OUT, out, at[k], v[k]);
    }
  }
}
