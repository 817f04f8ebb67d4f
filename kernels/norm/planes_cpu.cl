// Batch and group normalisation for CPU drivers, one statistic after the other: computes mean, squared
// differences and result while the statistic's planes are in the cache. All values are taken relative to a
// pivot among its elements (pivot.h).
//   COMPUTE; X, OUT; W (weight and bias), S (saved statistics), R (running statistics); HAS_WEIGHT, HAS_BIAS;
//   BY_CHANNEL; TRAIN: statistics are the input's; they are saved, and update the running ones if
//   HAS_RUNNING; else they are given, and each plane is processed separately
#include "norm_planes.h"
#include "pivot.h"

#define X16_AT(i) (LOAD16(X, x, i) - pivot16)
#define SQUARE16(i) ((X16_AT(i) - mean16) * (X16_AT(i) - mean16))
#define SCALED16(v) (((v) - mean16) * scale16 + bias16)

ONE_ITEM __kernel void planes_norm(PAIR(x), PAIR(weight), PAIR(bias), TARGET(running_mean),
                                   TARGET(running_var), TARGET(save_mean), TARGET(save_scale), TARGET(out),
                                   const NormPlanesParams p) {
  __global const STYPE(X) *input = AT_CONST(X, x_base, x_offset);
  FOR_EACH_STATISTIC(s) {
#if TRAIN
    const T pivot = PIVOT(X, input, PLANE(s, 0) * p.inner, p.inner);
    const T16 pivot16 = (T16)(pivot);
    // Adjacent planes are processed as one long plane.
    const long runs = p.piece_step == 1 ? 1 : p.pieces,
               length = p.piece_step == 1 ? p.pieces * p.inner : p.inner;
    T16 sums = (T16)((T)0), squares = sums;
    for (long j = 0; j < runs; ++j) {
      __global const STYPE(X) *x = input + PLANE(s, j) * p.inner;
      ADD_PLANE(sums, length, X16_AT)
    }
    const T count = FROM_BITS(COMPUTE, p.count), mean = sum_lanes(sums) / count;
    const T16 mean16 = (T16)(mean);
    for (long j = 0; j < runs; ++j) {
      __global const STYPE(X) *x = input + PLANE(s, j) * p.inner;
      ADD_PLANE(squares, length, SQUARE16)
    }
    const T variance = sum_lanes(squares) / count;
#else
    const T pivot = 0, mean = IN(R, running_mean, s % p.channels * p.mean_stride);
    const T16 pivot16 = (T16)(pivot), mean16 = (T16)(mean);
    const T variance = IN(R, running_var, s % p.channels * p.variance_stride);
#endif
    const T scale = (T)1 / sqrt(variance + FROM_BITS(COMPUTE, p.eps));
#if TRAIN
    RESULT(S, save_mean, s, pivot + mean);
    RESULT(S, save_scale, s, scale);
#endif
#if HAS_RUNNING
    const T momentum = FROM_BITS(COMPUTE, p.momentum), kept = (T)1 - momentum;
    const long m = s * p.mean_stride, v = s * p.variance_stride;
    RESULT(R, running_mean, m, momentum * (pivot + mean) + kept * IN(R, running_mean, m));
    RESULT(R, running_var, v,
           momentum * (variance * (count / (count - (T)1))) + kept * IN(R, running_var, v));
#endif
    for (long j = 0; j < p.pieces; ++j) {
      const long plane = PLANE(s, j), c = CHANNEL(s, plane);
      __global const STYPE(X) *x = input + plane * p.inner;
      __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + plane * p.inner;
      const T16 scale16 = (T16)(scale * WEIGHT(c));
      const T16 bias16 = (T16)(HAS_BIAS ? IN(W, bias, c * p.bias_stride) : (T)0);
      const T16 last = X16_AT(p.inner - 16);  // before anything is written
      long i = 0;
      for (; i + 16 <= p.inner; i += 16) STORE16(OUT, out, i, SCALED16(X16_AT(i)));
      if (i < p.inner) STORE16(OUT, out, p.inner - 16, SCALED16(last));
    }
  }
}
