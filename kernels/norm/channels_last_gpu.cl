// Batch normalisation of channels_last tensors for GPUs. Training reads the input twice: `moments` finds
// those of each channel in a piece of the rows, `merge` puts the pieces together, `apply` writes the result.
// Else `apply` is enough. Blocks of rows, lanes and pieces have means and sums of squared differences, which
// are merged (Chan, Golub and LeVeque 1983); sums are of differences from a pivot (pivot.h).
//   COMPUTE; X, OUT; W (weight and bias), S (saved statistics), R (running statistics); HAS_WEIGHT, HAS_BIAS
//   TRAIN: statistics are the input's; they are saved, and update the running ones if HAS_RUNNING; else they
//   are given
#define BLOCK 4  // rows that are loaded at once
#include "norm_channels.h"
#include "pivot.h"

INLINE T pivot_of(NormChannelsParams p, __global const STYPE(X) *x, INDEX c) {
  const INDEX channels = p.channels;
  return median_pivot(LOAD(X, x, c), LOAD(X, x, (INDEX)(p.rows / 2) * channels + c),
                      LOAD(X, x, (INDEX)(p.rows - 1) * channels + c));
}

#if TRAIN
// partials: the sums of differences from the pivot, and of squared ones from the piece's mean.
SIZED __kernel void moments(PAIR(x), TARGET(partials), const NormChannelsParams p) {
  PLACE
  __local T shared[VEC * GROUP];
  __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset);
  T origin[VEC], sum[VEC], squares[VEC], count = 0;
  EACH_CHANNEL {
    origin[j] = pivot_of(p, x, c + j);
    sum[j] = squares[j] = 0;
  }
  for (INDEX row = first + lane; row < end; row += BLOCK * LANES) {
    T v[BLOCK][VEC];
    const int n = ROWS_LEFT(row);
    EACH_VECTOR { LOADV(X, x, AT_ROW(row, k, n), v[k]); }
    const T more = n, both = count + more, share = count / both * more, each = (T)1 / more;
    const T before = count > 0 ? (T)1 / count : (T)0;
    EACH_CHANNEL {
      T of_block = 0, squares_of_block = 0;
      EACH_VECTOR {
        v[k][j] -= origin[j];
        of_block += k < n ? v[k][j] : (T)0;
      }
      const T mean = of_block * each;
      EACH_VECTOR {
        const T d = v[k][j] - mean;
        squares_of_block += k < n ? d * d : (T)0;
      }
      const T difference = count > 0 ? mean - sum[j] * before : (T)0;
      squares[j] += squares_of_block + difference * difference * share;
      sum[j] += of_block;
    }
    count = both;
  }
  T all[VEC];
  EACH_CHANNEL all[j] = sum[j];
  add_lanes(shared, all, id, lane);
  const T rows = end - first;
  EACH_CHANNEL {
    const T difference = count > 0 ? sum[j] / count - all[j] / rows : (T)0;
    squares[j] += count * difference * difference;
  }
  add_lanes(shared, squares, id, lane);
  if (lane == 0 && here) {
    __global STYPE(COMPUTE) *partials = AT(COMPUTE, partials_base, partials_offset);
    EACH_CHANNEL partials[PARTIAL(0, piece, c + j)] = all[j];
    EACH_CHANNEL partials[PARTIAL(1, piece, c + j)] = squares[j];
  }
}

// table: [mean | scale | shift] of all channels.
SIZED __kernel void merge(PAIR(x), PAIR(partials), PAIR(weight), PAIR(bias), TARGET(running_mean),
                          TARGET(running_var), TARGET(save_mean), TARGET(save_scale), TARGET(table),
                          const NormChannelsParams p) {
  PLACE_TO_MERGE
  const T count = FROM_BITS(COMPUTE, p.count), origin = pivot_of(p, AT_CONST(X, x_base, x_offset), c);
  T sum = 0, squares = 0;
  for (INDEX i = lane; i < pieces; i += lanes) sum += partials[PARTIAL(0, i, c)];
  const T offset = SUM_OF_LANES(sum) / count;
  for (INDEX i = lane; i < pieces; i += lanes) {
    const T rows = min(p.rows - (long)i * p.piece, (long)p.piece);
    const T difference = partials[PARTIAL(0, i, c)] / rows - offset;
    squares += partials[PARTIAL(1, i, c)] + rows * difference * difference;
  }
  const T variance = SUM_OF_LANES(squares) / count;
  if (lane != 0 || !here) return;
  const T mean = origin + offset;
  const T lost = (origin - mean) + offset;  // mean's rounding error: large beside a small deviation
  const T inverse = (T)1 / sqrt(variance + FROM_BITS(COMPUTE, p.eps)), scale = inverse * WEIGHT(c);
  RESULT(S, save_mean, c, mean);
  RESULT(S, save_scale, c, inverse);
#if HAS_RUNNING
  const T momentum = FROM_BITS(COMPUTE, p.momentum), kept = (T)1 - momentum;
  const long at_mean = c * p.mean_stride, at_var = c * p.variance_stride;
  RESULT(R, running_mean, at_mean, momentum * mean + kept * IN(R, running_mean, at_mean));
  RESULT(R, running_var, at_var,
         momentum * (variance * (count / (count - (T)1))) + kept * IN(R, running_var, at_var));
#endif
  __global STYPE(COMPUTE) *table = AT(COMPUTE, table_base, table_offset);
  table[c] = mean;
  table[p.channels + c] = scale;
  table[2 * p.channels + c] = (HAS_BIAS ? IN(W, bias, c * p.bias_stride) : (T)0) - lost * scale;
}
#endif

// Of a channel: its mean, scale and shift.
#if TRAIN
#define NUMBERS(mean, scale, shift, c)                                                   \
  {                                                                                      \
    __global const STYPE(COMPUTE) *table = AT_CONST(COMPUTE, table_base, table_offset);  \
    mean = table[c], scale = table[channels + (c)], shift = table[2 * channels + (c)];   \
  }
#else
#define NUMBERS(mean, scale, shift, c)                                                                   \
  {                                                                                                      \
    const T variance = IN(R, running_var, (c) * p.variance_stride);                                      \
    mean = IN(R, running_mean, (c) * p.mean_stride);                                                     \
    scale = (T)1 / sqrt(variance + FROM_BITS(COMPUTE, p.eps)) * WEIGHT(c);                               \
    shift = HAS_BIAS ? IN(W, bias, (c) * p.bias_stride) : (T)0;                                          \
  }
#endif
SIZED __kernel void apply(PAIR(x), PAIR(weight), PAIR(bias), PAIR(running_mean), PAIR(running_var),
                          PAIR(table), TARGET(out), const NormChannelsParams p) {
  PLACE
  if (!here) return;
  __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
  T mean[VEC], scale[VEC], shift[VEC];
  EACH_CHANNEL NUMBERS(mean[j], scale[j], shift[j], c + j)
  for (INDEX row = first + lane; row < end; row += BLOCK * LANES) {
    T v[BLOCK][VEC];
    const int n = ROWS_LEFT(row);
    EACH_VECTOR { LOADV(X, x, AT_ROW(row, k, n), v[k]); }
    EACH_VECTOR if (k < n) {
      EACH_CHANNEL v[k][j] = (v[k][j] - mean[j]) * scale[j] + shift[j];
      STOREV(OUT, out, AT_ROW(row, k, n), v[k]);
    }
  }
}
