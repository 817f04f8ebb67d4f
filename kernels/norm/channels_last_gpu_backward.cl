// Gradients of batch normalisation of channels_last tensors for GPUs: `sums` adds up each channel in a piece
// of the rows, `merge` puts the pieces together and writes the gradients of weight and bias, `apply` writes
// the input's. With s1, s2 the sums of dy and of dy * (x - mean) over a channel (0 unless TRAIN), dx = dy * w
// * r - w * r * s1 / n - (x - mean) * w * r^3 * s2 / n.
//   COMPUTE; DY, X, OUT; W (weight and its gradients), S (mean, and inverse or with FROM_VARIANCE variance);
//   HAS_WEIGHT, HAS_WEIGHT_GRAD, HAS_BIAS_GRAD
#define BLOCK (VEC > 4 ? 2 : 4)  // rows of both operands that are loaded at once
#include "norm_channels.h"

SIZED __kernel void sums(PAIR(dy), PAIR(x), PAIR(mean), TARGET(partials), const NormChannelsParams p) {
  PLACE
  __local T shared[VEC * GROUP];
  __global const STYPE(DY) *dy = AT_CONST(DY, dy_base, dy_offset);
  __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset);
  T mean[VEC], sum[VEC], dot[VEC];
  EACH_CHANNEL {
    mean[j] = IN(S, mean, (c + j) * p.mean_stride);
    sum[j] = dot[j] = 0;
  }
  for (INDEX row = first + lane; row < end; row += BLOCK * LANES) {
    T g[BLOCK][VEC], v[BLOCK][VEC];
    const int n = ROWS_LEFT(row);
    EACH_VECTOR {
      LOADV(DY, dy, AT_ROW(row, k, n), g[k]);
      LOADV(X, x, AT_ROW(row, k, n), v[k]);
    }
    EACH_CHANNEL {
      T of_block = 0, dot_of_block = 0;
      EACH_VECTOR {
        of_block += k < n ? g[k][j] : (T)0;
        dot_of_block += k < n ? g[k][j] * (v[k][j] - mean[j]) : (T)0;
      }
      sum[j] += of_block;
      dot[j] += dot_of_block;
    }
  }
  add_lanes(shared, sum, id, lane);
  add_lanes(shared, dot, id, lane);
  if (lane == 0 && here) {
    __global STYPE(COMPUTE) *partials = AT(COMPUTE, partials_base, partials_offset);
    EACH_CHANNEL partials[PARTIAL(0, piece, c + j)] = sum[j];
    EACH_CHANNEL partials[PARTIAL(1, piece, c + j)] = dot[j];
  }
}

// table: [mean | scale | k1 | k2] of all channels.
SIZED __kernel void merge(PAIR(partials), PAIR(mean), PAIR(inverse), PAIR(weight), TARGET(dw), TARGET(db),
                          TARGET(table), const NormChannelsParams p) {
  PLACE_TO_MERGE
  T sum = 0, dot = 0;
  for (INDEX i = lane; i < pieces; i += lanes) {
    sum += partials[PARTIAL(0, i, c)];
    dot += partials[PARTIAL(1, i, c)];
  }
  sum = SUM_OF_LANES(sum);
  dot = SUM_OF_LANES(dot);
  if (lane != 0 || !here) return;
#if FROM_VARIANCE
  const T r = (T)1 / sqrt(IN(S, inverse, c * p.variance_stride) + FROM_BITS(COMPUTE, p.eps));
#else
  const T r = IN(S, inverse, c * p.variance_stride);
#endif
#if HAS_WEIGHT_GRAD
  RESULT(W, dw, c, dot * r);
#endif
#if HAS_BIAS_GRAD
  RESULT(W, db, c, sum);
#endif
  const T weight = WEIGHT(c), count = FROM_BITS(COMPUTE, p.count);
  __global STYPE(COMPUTE) *table = AT(COMPUTE, table_base, table_offset);
  table[c] = IN(S, mean, c * p.mean_stride);
  table[p.channels + c] = r * weight;
  table[2 * p.channels + c] = TRAIN ? r * (weight * sum) / count : (T)0;
  table[3 * p.channels + c] = TRAIN ? r * r * r * (weight * dot) / count : (T)0;
}

SIZED __kernel void apply(PAIR(dy), PAIR(x), PAIR(table), TARGET(out), const NormChannelsParams p) {
  PLACE
  if (!here) return;
  __global const STYPE(DY) *dy = AT_CONST(DY, dy_base, dy_offset);
  __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
  __global const STYPE(COMPUTE) *table = AT_CONST(COMPUTE, table_base, table_offset) + c;
  T mean[VEC], scale[VEC], k1[VEC], k2[VEC];
  EACH_CHANNEL {
    mean[j] = table[j], scale[j] = table[channels + j];
    k1[j] = table[2 * channels + j], k2[j] = table[3 * channels + j];
  }
  for (INDEX row = first + lane; row < end; row += BLOCK * LANES) {
    T g[BLOCK][VEC], v[BLOCK][VEC];
    const int n = ROWS_LEFT(row);
    EACH_VECTOR {
      LOADV(DY, dy, AT_ROW(row, k, n), g[k]);
#if TRAIN
      LOADV(X, x, AT_ROW(row, k, n), v[k]);
#endif
    }
    EACH_VECTOR if (k < n) {
#if TRAIN
      EACH_CHANNEL v[k][j] = g[k][j] * scale[j] - k1[j] - (v[k][j] - mean[j]) * k2[j];
#else
      EACH_CHANNEL v[k][j] = g[k][j] * scale[j];
#endif
      STOREV(OUT, out, AT_ROW(row, k, n), v[k]);
    }
  }
}
