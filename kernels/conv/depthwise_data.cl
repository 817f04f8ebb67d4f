// Transpose of a depthwise convolution (one big channel in a group) for GPUs, read directly from the map.
// Defines: as depthwise.h; ADD_SELF (1: there is a bias); PHASE ((padding - WINDOW + 1) modulo STRIDE).
#include "depthwise.h"

#if WINDOW
#define LINES ((WINDOW + STRIDE - 1) / STRIDE)  // columns of the small map that one of big's uses
#endif

// big = transpose of the convolution applied to small (+ bias). The taps that reach a column x all have the
// same remainder modulo the stride.
__kernel void depthwise_data(__global void *big_base, ulong big_offset, __global const void *small_base,
                             ulong small_offset, __global const void *weight_base, ulong weight_offset,
                             __global const void *bias_base, ulong bias_offset, const ConvParams p) {
  const Strip at = strip_of(get_global_id(0), p.in[2], p.in[1], p.groups);
  if (at.n >= p.batch) return;
  item_t sum[ROWS];
  UNROLL for (int t = 0; t < ROWS; ++t) sum[t] = (item_t)(0);
  const Epilogue end = epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride);
  const item_t self = self_of_strip(at, end);
  for (int m = 0; m < (int)p.small_channels; ++m) {
    const int channel = at.channel * (int)p.small_channels + m;
    __global const T *small =
        AT_CONST(TYPE, small_base, small_offset) + at.n * p.small_strides[0] + channel * p.small_strides[1];
    __global const T *weight = AT_CONST(TYPE, weight_base, weight_offset) + channel * p.weight_strides[0];
#if WINDOW
    const int first = (at.x + (int)p.padding[2]) % STRIDE, last = (at.x + (int)p.padding[2]) / STRIDE;
    const int top = (at.y + (int)p.padding[1] - (WINDOW - 1) - PHASE) / STRIDE;  // divides exactly, by PHASE
    item_t w[WINDOW][LINES];
    UNROLL for (int ky = 0; ky < WINDOW; ++ky) UNROLL for (int i = 0; i < LINES; ++i)
        w[ky][i] =
            first + i * STRIDE < WINDOW
                ? LOAD_APART(weight, ky * p.weight_strides[3] + (first + i * STRIDE) * p.weight_strides[4],
                             p.weight_strides[0])
                : (item_t)(0);
#if COLUMNS == 2
    int column[PLACES];
    bool inside[PLACES];
    place_columns(last - WINDOW + 1, p.out[2], p.small_strides[4], column, inside);
#define LINE(i) (WINDOW - 1 - (i))
#else
    int column[LINES];
    bool inside[LINES];
#define LINE(i) (i)
    UNROLL for (int i = 0; i < LINES; ++i) {
      inside[i] = is_inside(last - i, p.out[2]) && first + i * STRIDE < WINDOW;
      column[i] = inside[i] ? (last - i) * (int)p.small_strides[4] : 0;
    }
#endif
    UNROLL for (int r = 0; r <= (PHASE + WINDOW - 1 + ROWS - 1) / STRIDE; ++r) {
      item_t v[LINES];
      LOAD_ROW(v, LINES, small, top + r, p.out[1], p.small_strides[3], column, inside)
      UNROLL for (int t = 0; t < ROWS; ++t) {
        const int ky = PHASE + WINDOW - 1 + t - r * STRIDE;
        if (ky >= 0 && ky < WINDOW)
          UNROLL for (int i = 0; i < LINES; ++i) sum[t] = fma(v[LINE(i)], w[ky][i], sum[t]);
      }
    }
#else
    for (int ky = 0; ky < (int)p.window[1]; ++ky)
      for (int kx = 0; kx < (int)p.window[2]; ++kx) {
        const int from = (int)(at.x + p.padding[2] - kx * p.dilation[2]), x = from / (int)p.stride[2];
        if (from < 0 || x * (int)p.stride[2] != from || x >= (int)p.out[2]) continue;
        const acc_t w = LOAD(TYPE, weight, ky * p.weight_strides[3] + kx * p.weight_strides[4]);
        UNROLL for (int t = 0; t < ROWS; ++t) {
          const int above = (int)(at.y + t + p.padding[1] - ky * p.dilation[1]), y = above / (int)p.stride[1];
          if (above >= 0 && y * (int)p.stride[1] == above && y < (int)p.out[1])
            sum[t] = fma(LOAD(TYPE, small, y * p.small_strides[3] + x * p.small_strides[4]), w, sum[t]);
        }
      }
#endif
  }
  store_strip(sum, self, end,
        AT(TYPE, big_base, big_offset) + at.n * p.big_strides[0] + at.channel * p.big_strides[1] +
            at.y * p.big_strides[3] + at.x * p.big_strides[4],
        p.in[1] - at.y, p.big_strides[3]);
}
