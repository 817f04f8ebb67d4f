// Gradient of weights with few channels in a group, for CPU drivers: vectors along the rows. A work-item
// takes a run of (output channel, input channel of its group) pairs and sums all images. Defines: TYPE,
// STRIDE (row_vectors.h), TAPS (3: a window of 3 x 3 in one pass; 5: of 5 x 5, a pass for each row; 0: a pass
// for each tap).
#include "conv_rows_params.h"
#include "vector_lanes.h"
#include "row_vectors.h"

#if TAPS == 3
#define PASS 9
#define TAP_Y(t) (t / 3)
#define TAP_X(t) (t % 3)
#elif TAPS == 5
#define PASS 5
#define TAP_Y(t) (t0 / 5)
#define TAP_X(t) (t)
#else
#define PASS 1
#define TAP_Y(t) ((t0 + t) / p.taps_x)
#define TAP_X(t) ((t0 + t) % p.taps_x)
#endif

ONE_ITEM __kernel void grouped_weight(__global void *w_base, ulong w_offset, __global const void *x_base,
                                      ulong x_offset, __global const void *y_base, ulong y_offset,
                                      const ConvRowsParams p, const long groups) {
  const int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const long pairs = groups * p.outputs * p.inputs;
  const long z0 = get_global_id(0) * p.per_item, z1 = min(pairs, z0 + p.per_item);
  for (long z = z0; z < z1; ++z) {
    const long channel = z / p.inputs, i = z - channel * p.inputs, g = channel / p.outputs,
               o = channel - g * p.outputs;
    __global STYPE(TYPE) *w = AT(TYPE, w_base, w_offset) + g * p.w_group + o * p.w_output + i * p.w_input;
    for (long t0 = 0; t0 < p.taps_y * p.taps_x; t0 += PASS) {
      float16 sum[PASS];
      long tap[PASS];
      UNROLL for (int t = 0; t < PASS; ++t) {
        sum[t] = (float16)(0);
        tap[t] = TAP_Y(t) * p.dilation_y * p.x_row + TAP_X(t) * p.dilation_x;
      }
      for (long n = 0; n < p.images; ++n)
        for (long h = 0; h < p.height; ++h) {
          __global const float *x = AT_CONST(f32, x_base, x_offset) + p.x_start + n * p.x_image +
                                    g * p.x_group + i * p.x_channel + h * p.stride_y * p.x_row;
          __global const STYPE(TYPE) *y = AT_CONST(TYPE, y_base, y_offset) + n * p.y_image + g * p.y_group +
                                          o * p.y_channel + h * p.y_row;
          long c = 0;
          for (; c + 16 <= p.width; c += 16) {
            const float16 d = load_row_part(y + c * p.y_col, p.y_col, 16);
            UNROLL for (int t = 0; t < PASS; ++t)
              sum[t] = fma(load_row(x + c * p.stride_x + tap[t], p.stride_x), d, sum[t]);
          }
          if (c < p.width) {  // masks lanes past the row: infinity times zero is NaN
            const int16 past = lanes >= (int16)((int)(p.width - c));
            const float16 d = load_row_part(y + c * p.y_col, p.y_col, p.width - c);
            UNROLL for (int t = 0; t < PASS; ++t)
              sum[t] = fma(select(load_row(x + c * p.stride_x + tap[t], p.stride_x), (float16)(0), past), d,
                           sum[t]);
          }
        }
      UNROLL for (int t = 0; t < PASS; ++t)
        STORE(TYPE, w, TAP_Y(t) * p.w_y + TAP_X(t) * p.w_x, sum_of_lanes(sum[t]));
    }
  }
}
