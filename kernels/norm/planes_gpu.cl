// Batch and group normalisation for GPUs. A statistic's elements are read once, in blocks whose means and
// sums of squared differences are merged (Chan, Golub and LeVeque 1983). Sums are of differences from a pivot
// among its elements (pivot.h), so that infinities give the right results.
//   COMPUTE; X, OUT; W (weight and bias), S (saved statistics), R (running statistics); HAS_WEIGHT, HAS_BIAS;
//   BY_CHANNEL: a statistic is a channel's, else run j of it is channel j of its group
//   TRAIN: statistics are the input's; they are saved, and update the running ones if HAS_RUNNING; else they
//   are given
//   MERGE: `moments` wrote those of the pieces to partials ([sums | squares], one statistic after the other,
//   then [origins]); else a statistic is one piece, whose lanes do everything
#include "norm_gpu.h"
#include "pivot.h"

typedef struct {
  T count, sum, squares;  // elements; sum of differences from the origin; of squared ones from the mean
} Moments;

INLINE Moments sweep(NormElementsParams p, __global const STYPE(X) *x, T origin, INDEX e, INDEX end) {
  Moments m = {0, 0, 0};
  Walk w = walk_from(p, e);
  while (w.e < end) {
    INDEX at[BLOCK], run[BLOCK];
    T v[BLOCK][VEC], sum = 0, squares = 0;
    const int n = next_block(p, &w, end, at, run);
    EACH_VECTOR { LOADV(X, x, at[k], v[k]); }
    EACH_VECTOR EACH_ELEMENT {
      v[k][j] -= origin;
      sum += k < n ? v[k][j] : (T)0;
    }
    const T count = n * VEC, mean = sum / count;
    EACH_VECTOR EACH_ELEMENT {
      const T d = v[k][j] - mean;
      squares += k < n ? d * d : (T)0;
    }
    const T difference = m.count > 0 ? mean - m.sum / m.count : (T)0, both = m.count + count;
    m.squares += squares + difference * difference * (m.count / both * count);
    m.sum += sum;
    m.count = both;
  }
  return m;
}

// The moments of all lanes together, which have `count` elements.
INLINE Moments moments_of_lanes(__local T *shared, Moments m, T count, uint id, uint lane, uint lanes) {
  Moments all;
  all.count = count;
  all.sum = sum_of_lanes(shared, m.sum, id, lane, lanes, 1);
  const T difference = m.count > 0 ? m.sum / m.count - all.sum / count : (T)0;
  all.squares = sum_of_lanes(shared, m.squares + m.count * difference * difference, id, lane, lanes, 1);
  return all;
}

#if MERGE
SIZED __kernel void moments(PAIR(x), TARGET(partials), const NormElementsParams p) {
  PLACE
  __global const STYPE(X) *x = AT_UNIT(X, x);
  const T origin = PIVOT(X, x, 0, p.length * VEC);
  const T count = (end - first) * VEC;
  const Moments m = moments_of_lanes(shared, sweep(p, x, origin, first + lane, end), count, id, lane, lanes);
  if (lane == 0 && here) {
    __global STYPE(COMPUTE) *partials = AT(COMPUTE, partials_base, partials_offset);
    partials[unit * pieces + piece] = m.sum;
    partials[(units + unit) * pieces + piece] = m.squares;
    if (piece == 0) partials[2 * units * pieces + unit] = origin;
  }
}
#endif

SIZED __kernel void planes_norm(PAIR(x), PAIR(weight), PAIR(bias), TARGET(running_mean), TARGET(running_var),
                                TARGET(save_mean), TARGET(save_scale), PAIR(partials), TARGET(out),
                                const NormElementsParams p) {
  PLACE
  __global const STYPE(X) *x = AT_UNIT(X, x);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + unit * (INDEX)p.unit_step * VEC;
#if TRAIN
  Moments m = {0, 0, 0};
#if MERGE
  __global const STYPE(COMPUTE) *partials = AT_CONST(COMPUTE, partials_base, partials_offset);
  const T origin = partials[2 * units * pieces + unit];
  if (lane < pieces) {  // there are at most as many pieces as lanes
    const INDEX start = lane * (INDEX)p.piece;
    m.count = (T)((min(total, (INDEX)(start + p.piece)) - start) * VEC);
    m.sum = partials[unit * pieces + lane];
    m.squares = partials[(units + unit) * pieces + lane];
  }
#else
  const T origin = PIVOT(X, x, 0, p.length * VEC);
  m = sweep(p, x, origin, first + lane, end);
#endif
  const T count = FROM_BITS(COMPUTE, p.count);
  m = moments_of_lanes(shared, m, count, id, lane, lanes);
  const T mean = m.sum / count, variance = m.squares / count;
#else
  const T origin = 0, mean = IN(R, running_mean, unit * p.mean_stride);
  const T variance = IN(R, running_var, unit * p.variance_stride);
#endif
  const T inverse = (T)1 / sqrt(variance + FROM_BITS(COMPUTE, p.eps));
#if TRAIN
  if (lane == 0 && piece == 0 && here) {
    RESULT(S, save_mean, unit, origin + mean);
    RESULT(S, save_scale, unit, inverse);
#if HAS_RUNNING
    const T momentum = FROM_BITS(COMPUTE, p.momentum), kept = (T)1 - momentum;
    const long at_mean = unit * p.mean_stride, at_var = unit * p.variance_stride;
    RESULT(R, running_mean, at_mean, momentum * (origin + mean) + kept * IN(R, running_mean, at_mean));
    RESULT(R, running_var, at_var,
           momentum * (variance * (count / (count - (T)1))) + kept * IN(R, running_var, at_var));
#endif
  }
#endif
  const long channel = (long)unit * p.unit_channels % p.channels;
#define SHIFT(c) (HAS_BIAS ? IN(W, bias, (c) * p.bias_stride) : (T)0)
  T scale = inverse * WEIGHT(channel), shift = SHIFT(channel);
  Walk w = walk_from(p, first + lane);
  while (w.e < end) {
    INDEX at[BLOCK], run[BLOCK];
    T v[BLOCK][VEC];
    const int n = next_block(p, &w, end, at, run);
    EACH_VECTOR { LOADV(X, x, at[k], v[k]); }
    EACH_VECTOR if (k < n) {
#if !BY_CHANNEL
      scale = inverse * WEIGHT(channel + run[k]);
      shift = SHIFT(channel + run[k]);
#endif
      EACH_ELEMENT v[k][j] = ((v[k][j] - origin) - mean) * scale + shift;
      STOREV(OUT, out, at[k], v[k]);
    }
  }
}
