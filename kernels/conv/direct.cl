// Direct convolution for CPU drivers. A tile is 14 output positions (two segments of 7 in a row, each with its own base
// pointer, so that maps of 7, 14, 28, 56 columns waste nothing) x 32 output channels, the whole sum in registers; the input
// is broadcast from the padded map, weights and bias come from pack_weights.cl. Defines: TYPE (of y).
#include "conv_rows_params.h"
#include "transpose.h"

#define SEGMENT 7

typedef struct {
  long image, row, col;
} Segment;
INLINE Segment segment(long s, const ConvRowsParams p) {
  const long per_row = (p.width + SEGMENT - 1) / SEGMENT, row = s / per_row;
  const Segment at = {row / p.height, row % p.height, (s - row * per_row) * SEGMENT};
  return at;
}

// The 7 x 16 sums of 16 channels from `channel` on to rows of y.
INLINE void store_segment(float16 sum[SEGMENT], __global STYPE(TYPE) *y, long y_channel, long y_col, long channels,
                          int columns) {
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

ONE_ITEM __kernel void conv_direct(__global void *y_base, ulong y_offset, __global const void *x_base, ulong x_offset,
                                   __global const void *w_base, ulong w_offset, const ConvRowsParams p) {
  const long block = get_global_id(p.channels_inner ? 0 : 1), chunk = get_global_id(p.channels_inner ? 1 : 0);
  const long g = get_global_id(2), taps = p.taps_y * p.taps_x;
  const long s0 = chunk * p.per_item * 2, s1 = min((long)p.segments, s0 + p.per_item * 2);
  __global const float *x = AT_CONST(f32, x_base, x_offset) + p.x_start + g * p.x_group;
  __global STYPE(TYPE) *y = AT(TYPE, y_base, y_offset) + p.y_start + g * p.y_group + block * 32 * p.y_channel;
  __global const float16 *packed =
      (__global const float16 *)(AT_CONST(f32, w_base, w_offset)) + (g * p.blocks + block) * (1 + p.inputs * taps) * 2;
  // The stride must stay unknown to the compiler: a literal 1 turns the broadcasts into one vector load and shuffles,
  // at half the speed.
  const long stride = p.stride_x;
  for (long s = s0; s < s1; s += 2) {
    const Segment a = segment(s, p), b = segment(min(s + 1, p.segments - 1), p);
    __global const float *xa = x + a.image * p.x_image + a.row * p.stride_y * p.x_row + a.col * stride;
    __global const float *xb = x + b.image * p.x_image + b.row * p.stride_y * p.x_row + b.col * stride;
    __global const float16 *w = packed + 2;
    float16 sum[2][2][SEGMENT];  // [vector of channels][segment][position]
    UNROLL for (int v = 0; v < 2; ++v) UNROLL for (int h = 0; h < 2; ++h) UNROLL for (int i = 0; i < SEGMENT; ++i)
      sum[v][h][i] = packed[v];
    for (long c = 0; c < p.inputs; ++c) {
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
    UNROLL for (int h = 0; h < 2; ++h) {
      if (h == 1 && s + 1 >= s1) break;
      const Segment at = h == 0 ? a : b;
      __global STYPE(TYPE) *to = y + at.image * p.y_image + at.row * p.y_row + at.col * p.y_col;
      UNROLL for (int v = 0; v < 2; ++v)
        store_segment(sum[v][h], to + 16 * v * p.y_channel, p.y_channel, p.y_col, p.outputs - block * 32 - 16 * v,
                      min((long)SEGMENT, p.width - at.col));
    }
  }
}
