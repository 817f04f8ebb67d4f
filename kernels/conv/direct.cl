// Direct convolution for CPU drivers. A tile is 14 output positions (two segments of 7 in a row, each with
// its own base pointer, so that maps of 7, 14, 28, 56 columns have no partial segments) x 32 output channels,
// whose sums are all in registers; the input is broadcast from the padded map. A work-item takes a block of
// 32 output channels and a run of tiles. It processes the input channels in chunks: it packs a chunk's
// weights into local memory (which every item reuses, so that it stays in the cache), then sweeps its tiles.
// Between chunks the sums are kept in scratch memory. With `wanted` it does nothing unless a word in memory
// has that value. Defines: TYPE (of y, weights and bias).
#define PACKED __local
#include "conv_weights.h"
#define SELF_TYPE TYPE
#include "epilogue.h"
END_OF_VECTORS(float16)

#define SEGMENT 7

typedef struct {
  long image, row, col;
} Segment;
INLINE Segment segment(long s, const ConvRowsParams p) {
  const long per_row = (p.width + SEGMENT - 1) / SEGMENT, row = s / per_row;
  const Segment at = {row / p.height, row % p.height, (s - row * per_row) * SEGMENT};
  return at;
}

// Stores the 7 x 16 sums of 16 channels to rows of y, of which `channels` channels and `columns` columns
// exist.
INLINE void store_segment(float16 sum[SEGMENT], __global STYPE(TYPE) *y, long y_channel, long y_col,
                          long channels, int columns) {
  if (y_channel == 1 && channels >= 16) {
    ROLLED for (int i = 0; i < columns; ++i) STORE16(TYPE, y, i * y_col, sum[i]);
    return;
  }
  float16 r[8];
  UNROLL for (int i = 0; i < SEGMENT; ++i) r[i] = sum[i];
  r[7] = (float16)(0);
  transpose8(r);
  if (sizeof(STYPE(TYPE)) == 4 && columns == SEGMENT && y_col == 1 && channels >= 16) {
    __global float *f = (__global float *)y;
    UNROLL for (int j = 0; j < 8; ++j) {
      const float8 a = r[j].lo, b = r[j].hi;
      vstore4(a.lo, 0, f);
      vstore3(a.s456, 0, f + 4);
      f += y_channel;
      vstore4(b.lo, 0, f);
      vstore3(b.s456, 0, f + 4);
      f += y_channel;
    }
    return;
  }
  float lane[128];
  UNROLL for (int j = 0; j < 8; ++j) vstore16(r[j], j, lane);
  for (int c = 0; c < min(channels, 16L); ++c)
    for (int i = 0; i < columns; ++i) STORE(TYPE, y, c * y_channel + i * y_col, lane[c * 8 + i]);
}

// sum += the products of input channels of one chunk, for both segments of a tile.
INLINE void add_chunk(float16 sum[2][2][SEGMENT], __local const float16 *w, __global const float *xa,
                      __global const float *xb, long channels, const ConvRowsParams p) {
  // The stride must be unknown to the compiler: with a literal 1 it replaces the broadcasts by one vector
  // load and shuffles, which is half as fast.
  const long stride = p.stride_x;
  for (long c = 0; c < channels; ++c) {
    __global const float *ra = xa, *rb = xb;
    for (long ky = 0; ky < p.taps_y; ++ky) {
      __global const float *qa = ra, *qb = rb;
      for (long kx = 0; kx < p.taps_x; ++kx) {
        const float16 w0 = w[0], w1 = w[1];
        w += 2;
        UNROLL for (int i = 0; i < SEGMENT; ++i) {
          const float16 v = (float16)(qa[i * stride]);
          sum[0][0][i] = fma(v, w0, sum[0][0][i]);
          sum[1][0][i] = fma(v, w1, sum[1][0][i]);
        }
        UNROLL for (int i = 0; i < SEGMENT; ++i) {
          const float16 v = (float16)(qb[i * stride]);
          sum[0][1][i] = fma(v, w0, sum[0][1][i]);
          sum[1][1][i] = fma(v, w1, sum[1][1][i]);
        }
        qa += p.dilation_x;
        qb += p.dilation_x;
      }
      ra += p.dilation_y * p.x_row;
      rb += p.dilation_y * p.x_row;
    }
    xa += p.x_channel;
    xb += p.x_channel;
  }
}

#define EACH_SUM(statement)                                                       \
  UNROLL for (int v = 0; v < 2; ++v) UNROLL for (int h = 0; h < 2; ++h)           \
      UNROLL for (int i = 0; i < SEGMENT; ++i) statement;

ONE_ITEM __kernel void conv_direct(__global void *y_base, ulong y_offset, __global const void *x_base,
                                   ulong x_offset, __global const void *w_base, ulong w_offset,
                                   __global const void *bias_base, ulong bias_offset,
                                   __global void *sums_base, ulong sums_offset,
                                   __global const void *word_base, ulong word_offset,
                                   __local float16 *packed, const uint wanted, const ConvRowsParams p) {
  if (wanted != 0 && *AT_CONST(u32, word_base, word_offset) != wanted) return;
  const long block = get_global_id(p.channels_inner ? 0 : 1), run = get_global_id(p.channels_inner ? 1 : 0);
  const long g = get_global_id(2), taps = p.taps_y * p.taps_x, n0 = block * 32;
  const long item = (g * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
  const long s0 = run * p.per_item * 2, s1 = min((long)p.segments, s0 + p.per_item * 2);
  __global const STYPE(TYPE) *w = AT_CONST(TYPE, w_base, w_offset) + p.w_start + g * p.w_group;
  __global STYPE(TYPE) *y = AT(TYPE, y_base, y_offset) + p.y_start + g * p.y_group + n0 * p.y_channel;
  const Epilogue end = epilogue_of_bias(p.add_bias != 0, bias_base, bias_offset, p.bias);
  float self[32];
  for (int i = 0; i < 32; ++i) self[i] = self_at(g * p.outputs + min(n0 + i, p.outputs - 1), 0, end);
  long c0 = 0, c1;
  do {
    c1 = min((long)p.inputs, c0 + p.inputs_per_chunk);
    pack_weights(packed, w, p.w_end - p.w_start - g * p.w_group, n0, c0 * taps, c1 * taps, p);
    __global const float *x = AT_CONST(f32, x_base, x_offset) + p.x_start + g * p.x_group + c0 * p.x_channel;
    __global float16 *wait =
        (__global float16 *)(AT(f32, sums_base, sums_offset)) + item * p.per_item * 4 * SEGMENT;
    for (long s = s0; s < s1; s += 2, wait += 4 * SEGMENT) {
      const Segment a = segment(s, p), b = segment(min(s + 1, p.segments - 1), p);
      float16 sum[2][2][SEGMENT];  // [vector of channels][segment][position]
      if (c0 == 0) {
        EACH_SUM(sum[v][h][i] = (float16)(0))
      } else {
        EACH_SUM(sum[v][h][i] = wait[(2 * v + h) * SEGMENT + i])
      }
      add_chunk(sum, packed, x + a.image * p.x_image + a.row * p.stride_y * p.x_row + a.col * p.stride_x,
                x + b.image * p.x_image + b.row * p.stride_y * p.x_row + b.col * p.stride_x, c1 - c0, p);
      if (c1 < p.inputs) {
        EACH_SUM(wait[(2 * v + h) * SEGMENT + i] = sum[v][h][i])
        continue;
      }
      // In a loop, by way of private memory: four inlined copies would be most of the kernel's compile time.
      float16 done[4][SEGMENT];
      EACH_SUM(done[2 * h + v][i] = sum[v][h][i])
      ROLLED for (int k = 0; k < (s + 1 < s1 ? 4 : 2); ++k) {
        const Segment at = k < 2 ? a : b;
        const long v = 16 * (k & 1);
        UNROLL for (int i = 0; i < SEGMENT; ++i)
          done[k][i] = ended_float16(done[k][i], vload16(k & 1, self), end);
        store_segment(done[k],
                      y + at.image * p.y_image + at.row * p.y_row + at.col * p.y_col + v * p.y_channel,
                      p.y_channel, p.y_col, p.outputs - n0 - v, min((long)SEGMENT, p.width - at.col));
      }
    }
    c0 = c1;
  } while (c0 < p.inputs);
}
