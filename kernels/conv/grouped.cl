// Convolution with few channels in a group for CPU drivers: vectors along the rows, OUTPUTS channels of a
// group at once. A work-item takes a run of (image, group) planes. Defines: TYPE, STRIDE (row_vectors.h),
// OUTPUTS (1 or 4), TAPS (3: a window of 3 x 3, unrolled; 0: any), ADD_SELF (1: there is a bias).
#include "conv_rows_params.h"
#include "row_vectors.h"
#define SELF_TYPE TYPE
#include "epilogue.h"
END_OF_VECTORS(float16)

#if TAPS == 3
#define TAPS_Y 3
#define TAPS_X 3
#define TAP_LOOP UNROLL
#else
#define TAPS_Y p.taps_y
#define TAPS_X p.taps_x
#define TAP_LOOP
#endif

ONE_ITEM __kernel void conv_grouped(__global void *y_base, ulong y_offset, __global const void *x_base,
                                    ulong x_offset, __global const void *w_base, ulong w_offset,
                                    __global const void *bias_base, ulong bias_offset, const ConvRowsParams p,
                                    const long groups) {
  const long z0 = get_global_id(0) * p.per_item, z1 = min(p.images * groups, z0 + p.per_item);
  const Epilogue end = epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias);
  for (long z = z0; z < z1; ++z) {
    const long n = z / groups, g = z - n * groups;
    __global const float *x = AT_CONST(f32, x_base, x_offset) + p.x_start + n * p.x_image + g * p.x_group;
    for (long o0 = 0; o0 < p.outputs; o0 += OUTPUTS) {
      __global const STYPE(TYPE) *w[OUTPUTS];
      float self[OUTPUTS];
      UNROLL for (int o = 0; o < OUTPUTS; ++o) {
        const long channel = min(o0 + o, p.outputs - 1);
        w[o] = AT_CONST(TYPE, w_base, w_offset) + p.w_start + g * p.w_group + channel * p.w_output;
        self[o] = self_at(g * p.outputs + channel, 0, end);
      }
#if TAPS == 3 && OUTPUTS == 1
      float16 weight[9];  // of the first channel, the only one of a depthwise convolution
      UNROLL for (int t = 0; t < 9; ++t)
        weight[t] = (float16)(LOAD(TYPE, w[0], t / 3 * p.w_y + t % 3 * p.w_x));
#endif
      __global STYPE(TYPE) *y =
          AT(TYPE, y_base, y_offset) + p.y_start + n * p.y_image + g * p.y_group + o0 * p.y_channel;
      for (long h = 0; h < p.height; ++h)
        for (long c = 0; c < p.width; c += 16) {
          float16 sum[OUTPUTS];
          UNROLL for (int o = 0; o < OUTPUTS; ++o) sum[o] = (float16)(0);
          for (long i = 0; i < p.inputs; ++i) {
            __global const float *plane = x + i * p.x_channel + h * p.stride_y * p.x_row + c * p.stride_x;
#if TAPS == 3 && OUTPUTS == 1
            if (p.inputs > 1) UNROLL for (int t = 0; t < 9; ++t)
              weight[t] = (float16)(LOAD(TYPE, w[0], i * p.w_input + t / 3 * p.w_y + t % 3 * p.w_x));
#endif
            TAP_LOOP for (int ky = 0; ky < TAPS_Y; ++ky) TAP_LOOP for (int kx = 0; kx < TAPS_X; ++kx) {
              const float16 v = load_row(plane + ky * p.dilation_y * p.x_row + kx * p.dilation_x, p.stride_x);
#if TAPS == 3 && OUTPUTS == 1
              sum[0] = fma(v, weight[ky * 3 + kx], sum[0]);
#else
              UNROLL for (int o = 0; o < OUTPUTS; ++o)
                sum[o] = fma(v, (float16)(LOAD(TYPE, w[o], i * p.w_input + ky * p.w_y + kx * p.w_x)), sum[o]);
#endif
            }
          }
          UNROLL for (int o = 0; o < OUTPUTS; ++o)
            if (o0 + o < p.outputs)
              store_row(ended_float16(sum[o], (float16)(self[o]), end),
                        y + o * p.y_channel + h * p.y_row + c * p.y_col, p.y_col, p.width - c);
        }
    }
  }
}
