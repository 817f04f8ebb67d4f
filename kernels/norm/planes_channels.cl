// The per-channel arithmetic of batch and group normalisation: turns statistics into the numbers that
// planes_apply_*.cl use. A plane is the elements that share those numbers (a channel, or with groups a
// sample's channel); `per_stat` adjacent planes share statistics. One work-item per plane or channel.
//   COMPUTE; W, S, R: types of weight and bias, of saved and of running statistics (where HAS_WEIGHT,
//   HAS_BIAS, HAS_SAVED, HAS_RUNNING); X: the input's type, for the forward kernel alone; TRAIN: means are
//   differences from the input's first elements, which are first_step apart; table: [shift | scale | bias]
//   or, backward, [shift | scale | k1 | k2], each of all planes
#include "types.h"
typedef CTYPE(COMPUTE) T;
#define IN(A, name, i) LOAD(A, AT_CONST(A, name##_base, name##_offset), i)
#define OUT(A, name, i, v) STORE(A, AT(A, name##_base, name##_offset), i, v)
#define PAIR(name) __global const void *name##_base, ulong name##_offset
#define TARGET(name) __global void *name##_base, ulong name##_offset
#define SCALE(c) (HAS_WEIGHT ? TO(COMPUTE, IN(W, weight, (c) * weight_stride)) : (T)1)

#ifdef X
PER_ITEM __kernel void prepare(PAIR(x), PAIR(mean), PAIR(variance), PAIR(weight), PAIR(bias),
                               TARGET(running_mean), TARGET(running_var), TARGET(save_mean),
                               TARGET(save_scale), TARGET(table), long planes, long channels, long per_stat,
                               long first_step, long weight_stride, long bias_stride, long mean_stride,
                               long variance_stride, ulong count_, ulong momentum_, ulong eps_) {
  const long p = get_global_id(0);
  if (p >= planes) return;
  const T count = FROM_BITS(COMPUTE, count_), momentum = FROM_BITS(COMPUTE, momentum_);
  const long s = p / per_stat, c = p % channels;
#if TRAIN
  const T first = TO(COMPUTE, IN(X, x, s * first_step)), pivot = fabs(first) < (T)INFINITY ? first : (T)0;
  const T offset = IN(COMPUTE, mean, s), m = pivot + offset, v = IN(COMPUTE, variance, s);
  const T lost = (pivot - m) + offset;  // m's rounding error: large beside a small deviation
#else
  const T lost = 0;
  const T m = TO(COMPUTE, IN(R, mean, s * mean_stride)),
          v = TO(COMPUTE, IN(R, variance, s * variance_stride));
#endif
  const T inverse = (T)1 / sqrt(v + FROM_BITS(COMPUTE, eps_));
#if HAS_SAVED
  if (p % per_stat == 0) {
    OUT(S, save_mean, s, m);
    OUT(S, save_scale, s, inverse);
  }
#endif
#if HAS_RUNNING
  const T old_mean = TO(COMPUTE, IN(R, running_mean, c * mean_stride));
  const T old_var = TO(COMPUTE, IN(R, running_var, c * variance_stride));
  OUT(R, running_mean, c * mean_stride, momentum * m + ((T)1 - momentum) * old_mean);
  OUT(R, running_var, c * variance_stride,
      momentum * (v * (count / (count - (T)1))) + ((T)1 - momentum) * old_var);
#endif
  OUT(COMPUTE, table, p, m);
  OUT(COMPUTE, table, planes + p, inverse * SCALE(c));
  OUT(COMPUTE, table, 2 * planes + p,
      (HAS_BIAS ? TO(COMPUTE, IN(W, bias, c * bias_stride)) : (T)0) - lost * inverse * SCALE(c));
}
#else

// sums, dots: per plane, the sums of dy and of dy * (x - mean). With s1, s2 their weighted sums over the
// planes of a statistic, dx = dy * w * r - r * s1 / n - (x - mean) * r^3 * s2 / n.
PER_ITEM __kernel void prepare_backward(PAIR(sums), PAIR(dots), PAIR(mean), PAIR(inverse), PAIR(weight),
                                        TARGET(table), long planes, long channels, long per_stat,
                                        long weight_stride, ulong count_) {
  const long p = get_global_id(0);
  if (p >= planes) return;
  const long s = p / per_stat;
  const T r = IN(COMPUTE, inverse, s);
  T s1 = 0, s2 = 0;
#if TRAIN
  for (long q = s * per_stat; q < (s + 1) * per_stat; ++q) {
    s1 += SCALE(q % channels) * IN(COMPUTE, sums, q);
    s2 += SCALE(q % channels) * IN(COMPUTE, dots, q);
  }
#endif
  const T count = FROM_BITS(COMPUTE, count_);
  OUT(COMPUTE, table, p, IN(COMPUTE, mean, s));
  OUT(COMPUTE, table, planes + p, r * SCALE(p % channels));
  OUT(COMPUTE, table, 2 * planes + p, r * s1 / count);
  OUT(COMPUTE, table, 3 * planes + p, r * r * r * s2 / count);
}

// Gradients of weight and bias: sums over the samples of a channel.
PER_ITEM __kernel void weights_backward(PAIR(sums), PAIR(dots), PAIR(inverse), TARGET(grad_weight),
                                        TARGET(grad_bias), long planes, long channels, long per_stat) {
  const long c = get_global_id(0);
  if (c >= channels) return;
  T dw = 0, db = 0;
  for (long p = c; p < planes; p += channels) {
    dw += IN(COMPUTE, dots, p) * IN(COMPUTE, inverse, p / per_stat);
    db += IN(COMPUTE, sums, p);
  }
#if HAS_WEIGHT_GRAD
  OUT(W, grad_weight, c, TO(W, dw));
#endif
#if HAS_BIAS_GRAD
  OUT(W, grad_bias, c, TO(W, db));
#endif
}

// 1 / sqrt(variance + eps) and the mean in the compute type, from running statistics.
PER_ITEM __kernel void inverses(PAIR(mean), PAIR(variance), TARGET(result), long channels, long mean_stride,
                                long variance_stride, ulong eps_) {
  const long c = get_global_id(0);
  if (c >= channels) return;
  OUT(COMPUTE, result, c, TO(COMPUTE, IN(R, mean, c * mean_stride)));
  OUT(COMPUTE, result, channels + c,
      (T)1 / sqrt(TO(COMPUTE, IN(R, variance, c * variance_stride)) + FROM_BITS(COMPUTE, eps_)));
}
#endif
