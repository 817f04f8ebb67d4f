// Depthwise convolution (one big channel in a group) for GPUs, forward, read directly from the map.
// Defines: as depthwise.h; ADD_SELF (1: there is a bias).
#include "depthwise.h"

// small = big convolved with weight (+ bias).
__kernel void depthwise_forward(__global const void *big_base, ulong big_offset, __global void *small_base,
                                ulong small_offset, __global const void *weight_base, ulong weight_offset,
                                __global const void *bias_base, ulong bias_offset, const ConvParams p) {
  const Strip at = strip_of(get_global_id(0), p.out[2], p.out[1], p.groups * p.small_channels);
  if (at.n >= p.batch) return;
  __global const T *big = AT_CONST(TYPE, big_base, big_offset) + at.n * p.big_strides[0] +
                          at.channel / (int)p.small_channels * p.big_strides[1];
  __global const T *weight = AT_CONST(TYPE, weight_base, weight_offset) + at.channel * p.weight_strides[0];
  item_t sum[ROWS];
  UNROLL for (int t = 0; t < ROWS; ++t) sum[t] = (item_t)(0);
  const Epilogue end = epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride);
  const item_t self = self_of_strip(at, end);
#if WINDOW
  item_t w[WINDOW][WINDOW];
  UNROLL for (int ky = 0; ky < WINDOW; ++ky) UNROLL for (int kx = 0; kx < WINDOW; ++kx)
    w[ky][kx] = LOAD_APART(weight, ky * p.weight_strides[3] + kx * p.weight_strides[4], p.weight_strides[0]);
  int column[PLACES];
  bool inside[PLACES];
  const int y = place_window(at, p, column, inside);
  UNROLL for (int r = 0; r < (ROWS - 1) * STRIDE + WINDOW; ++r) {
    item_t v[WINDOW];
    LOAD_ROW(v, WINDOW, big, y + r, p.in[1], p.big_strides[3], column, inside)
    UNROLL for (int t = 0; t < ROWS; ++t) {
      const int ky = r - t * STRIDE;
      if (ky >= 0 && ky < WINDOW)
        UNROLL for (int kx = 0; kx < WINDOW; ++kx) sum[t] = fma(v[kx], w[ky][kx], sum[t]);
    }
  }
#else
  for (int ky = 0; ky < (int)p.window[1]; ++ky)
    for (int kx = 0; kx < (int)p.window[2]; ++kx) {
      const int x = (int)(at.x * p.stride[2] - p.padding[2] + kx * p.dilation[2]);
      if (!is_inside(x, p.in[2])) continue;
      const acc_t w = LOAD(TYPE, weight, ky * p.weight_strides[3] + kx * p.weight_strides[4]);
      UNROLL for (int t = 0; t < ROWS; ++t) {
        const int y = (int)((at.y + t) * p.stride[1] - p.padding[1] + ky * p.dilation[1]);
        if (is_inside(y, p.in[1]))
          sum[t] = fma(LOAD(TYPE, big, y * p.big_strides[3] + x * p.big_strides[4]), w, sum[t]);
      }
    }
#endif
  store_strip(sum, self, end,
        AT(TYPE, small_base, small_offset) + at.n * p.small_strides[0] + at.channel * p.small_strides[1] +
            at.y * p.small_strides[3] + at.x * p.small_strides[4],
        p.out[1] - at.y, p.small_strides[3]);
}
