// Gradient of weights for CPU drivers: the output's gradient is packed to [group][block of 32 channels][image
// and position][32]; a work-item sums a run of (input channel, tap) rows, nine at a time, each with its own
// pointer into the padded input, over all images in a fixed order. Defines: TYPE.
#include "conv_rows_params.h"
#include "transpose.h"

#define ROWS 9
#define CHUNK 512

// Grid: blocks, image and chunks of positions, groups. y: the gradient; positions count through its rows.
ONE_ITEM __kernel void pack_gradient(__global void *packed_base, ulong packed_offset,
                                     __global const void *y_base, ulong y_offset, const ConvRowsParams p) {
  const long positions = p.height * p.width, chunks = (positions + CHUNK - 1) / CHUNK;
  const long block = get_global_id(0), n = get_global_id(1) / chunks, g = get_global_id(2);
  const long i0 = (get_global_id(1) - n * chunks) * CHUNK, i1 = min(positions, i0 + CHUNK);
  const long last = p.outputs - 1 - block * 32;  // channels past the last repeat it
  __global const STYPE(TYPE) *y =
      AT_CONST(TYPE, y_base, y_offset) + n * p.y_image + g * p.y_group + block * 32 * p.y_channel;
  __global float16 *to = (__global float16 *)(AT(f32, packed_base, packed_offset)) +
                         ((g * p.blocks + block) * p.images + n) * positions * 2;
  long i = i0;
  if (p.y_col == 1 && p.y_row == p.width)
    for (; i + 16 <= i1; i += 16) ROLLED for (int v = 0; v < 2; ++v) {
      float16 r[16];
      UNROLL for (int c = 0; c < 16; ++c) r[c] = LOAD16(TYPE, y, min(v * 16L + c, last) * p.y_channel + i);
      transpose16(r);
      UNROLL for (int c = 0; c < 16; ++c) to[2 * (i + c) + v] = r[c];
    }
  ROLLED for (; i < i1; ++i) {
    const long row = i / p.width, at = row * p.y_row + (i - row * p.width) * p.y_col;
    if (p.y_channel == 1 && last >= 31) {
      to[2 * i] = LOAD16(TYPE, y, at);
      to[2 * i + 1] = LOAD16(TYPE, y, at + 16);
      continue;
    }
    float lane[32];
    for (int c = 0; c < 32; ++c) lane[c] = LOAD(TYPE, y, min((long)c, last) * p.y_channel + at);
    to[2 * i] = vload16(0, lane);
    to[2 * i + 1] = vload16(1, lane);
  }
}

// Grid: chunks of rows, blocks, groups. Writes sums as [group][block][row][32].
ONE_ITEM __kernel void conv_weight(__global void *sums_base, ulong sums_offset, __global const void *x_base,
                                   ulong x_offset, __global const void *packed_base, ulong packed_offset,
                                   const ConvRowsParams p) {
  const long taps = p.taps_y * p.taps_x, rows = p.inputs * taps, positions = p.height * p.width;
  const long block = get_global_id(1), g = get_global_id(2);
  const long k0 = get_global_id(0) * p.per_item, k1 = min(rows, k0 + p.per_item);
  __global const float *x = AT_CONST(f32, x_base, x_offset) + p.x_start + g * p.x_group;
  __global float16 *to =
      (__global float16 *)(AT(f32, sums_base, sums_offset)) + (g * p.blocks + block) * rows * 2;
  const long stride = p.stride_x;
  for (long n = 0; n < p.images; ++n)
    for (long k = k0; k < k1; k += ROWS) {
      __global const float *a[ROWS];
      float16 sum[ROWS][2];
      UNROLL for (int i = 0; i < ROWS; ++i) {
        const long q = min(k + i, rows - 1), c = q / taps, t = q - c * taps, ky = t / p.taps_x;
        a[i] = x + n * p.x_image + c * p.x_channel + ky * p.dilation_y * p.x_row +
               (t - ky * p.taps_x) * p.dilation_x;
        const long at = k + min((long)i, k1 - 1 - k);
        sum[i][0] = n > 0 ? to[2 * at] : (float16)(0);
        sum[i][1] = n > 0 ? to[2 * at + 1] : (float16)(0);
      }
      __global const float16 *d = (__global const float16 *)(AT_CONST(f32, packed_base, packed_offset)) +
                                  ((g * p.blocks + block) * p.images + n) * positions * 2;
      for (long y = 0; y < p.height; ++y) {
        for (long i = 0; i < p.width; ++i) {
          const float16 d0 = d[0], d1 = d[1];
          d += 2;
          const long at = i * stride;
          UNROLL for (int r = 0; r < ROWS; ++r) {
            const float16 v = (float16)(a[r][at]);
            sum[r][0] = fma(v, d0, sum[r][0]);
            sum[r][1] = fma(v, d1, sum[r][1]);
          }
        }
        UNROLL for (int r = 0; r < ROWS; ++r) a[r] += p.stride_y * p.x_row;
      }
      UNROLL for (int r = 0; r < ROWS; ++r)
        if (k + r < k1) {
          to[2 * (k + r)] = sum[r][0];
          to[2 * (k + r) + 1] = sum[r][1];
        }
    }
}

// Grid: blocks, chunks of rows, groups. Copies the sums to the weights' layout.
ONE_ITEM __kernel void unpack_weight(__global void *w_base, ulong w_offset, __global const void *sums_base,
                                     ulong sums_offset, const ConvRowsParams p) {
  const long taps = p.taps_y * p.taps_x, rows = p.inputs * taps, block = get_global_id(0),
             g = get_global_id(2);
  const long k0 = get_global_id(1) * 256, k1 = min(rows, k0 + 256),
             outputs = min(32L, p.outputs - block * 32);
  __global const float16 *from =
      (__global const float16 *)(AT_CONST(f32, sums_base, sums_offset)) + (g * p.blocks + block) * rows * 2;
  __global STYPE(TYPE) *w = AT(TYPE, w_base, w_offset) + g * p.w_group + block * 32 * p.w_output;
  long k = k0;
  if (p.w_x == 1 && p.w_y == p.taps_x && p.w_input == taps)
    for (; k + 16 <= k1; k += 16) ROLLED for (int v = 0; v < 2; ++v) {
      float16 r[16];
      UNROLL for (int i = 0; i < 16; ++i) r[i] = from[2 * (k + i) + v];
      transpose16(r);
      UNROLL for (int i = 0; i < 16; ++i)
        if (v * 16 + i < outputs) STORE16(TYPE, w, (v * 16 + i) * p.w_output + k, r[i]);
    }
  ROLLED for (; k < k1; ++k) {
    const long c = k / taps, t = k - c * taps, ky = t / p.taps_x;
    const long at = c * p.w_input + ky * p.w_y + (t - ky * p.taps_x) * p.w_x;
    float lane[32];
    vstore16(from[2 * k], 0, lane);
    vstore16(from[2 * k + 1], 1, lane);
    for (int i = 0; i < outputs; ++i) STORE(TYPE, w, i * p.w_output + at, lane[i]);
  }
}
