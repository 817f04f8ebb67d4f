// Depthwise convolution of channels_last maps for CPU drivers: 16 neighbouring channels are a vector, and
// maps are read in place. What lies outside of the map is left out. Defines: TYPE; BACK (1: the big map is
// written, from the small one); ADD_SELF (conv_channels; 1: there is a bias); TAPS_X (weight_channels: the
// window's width).
#include "conv_params.h"
#define SELF_TYPE f32
#include "epilogue.h"
END_OF_VECTORS(float16)

#define MOST_TAPS 64
#define CHANNELS 16

// Position i of dimension d of the written map meets this position of the other one at a tap; -1: none.
INLINE long place(long i, long tap, int d, const ConvParams p) {
#if BACK
  const long t = i + p.padding[d] - tap * p.dilation[d], at = t / p.stride[d];
  return t < 0 || at * p.stride[d] != t || at >= p.out[d] ? -1 : at;
#else
  const long at = i * p.stride[d] - p.padding[d] + tap * p.dilation[d];
  return at < 0 || at >= p.in[d] ? -1 : at;
#endif
}

#ifndef TAPS_X
#if BACK
#define WRITTEN(name) p.big_##name
#define READ(name) p.small_##name
#define SIZE p.in
#else
#define WRITTEN(name) p.small_##name
#define READ(name) p.big_##name
#define SIZE p.out
#endif

// A work-item takes rows. weights: float, [tap][channel]; bias: float, of neighbouring channels.
ONE_ITEM __kernel void conv_channels(__global void *to_base, ulong to_offset, __global const void *from_base,
                                     ulong from_offset, __global const void *weights_base,
                                     ulong weights_offset, __global const void *bias_base, ulong bias_offset,
                                     const ConvParams p, const long rows) {
  __global const float *weights = AT_CONST(f32, weights_base, weights_offset);
  const long r0 = get_global_id(0) * rows, r1 = min(p.batch * SIZE[1], r0 + rows), channels = p.groups;
  const Epilogue end = epilogue_of_bias(ADD_SELF, bias_base, bias_offset, 1);
  for (long r = r0; r < r1; ++r) {
    const long n = r / SIZE[1], y = r - n * SIZE[1];
    __global const STYPE(TYPE) *from = AT_CONST(TYPE, from_base, from_offset) + n * READ(strides)[0];
    __global STYPE(TYPE) *to =
        AT(TYPE, to_base, to_offset) + n * WRITTEN(strides)[0] + y * WRITTEN(strides)[3];
    for (long x = 0; x < SIZE[2]; ++x, to += WRITTEN(strides)[4]) {
      long offset[MOST_TAPS], weight[MOST_TAPS];
      int count = 0;
      for (long ky = 0; ky < p.window[1]; ++ky) {
        const long at_y = place(y, ky, 1, p);
        if (at_y < 0) continue;
        for (long kx = 0; kx < p.window[2]; ++kx) {
          const long at_x = place(x, kx, 2, p);
          if (at_x < 0) continue;
          offset[count] = at_y * READ(strides)[3] + at_x * READ(strides)[4];
          weight[count++] = (ky * p.window[2] + kx) * channels;
        }
      }
      for (long c = 0; c < channels; c += CHANNELS) {
        const long at = min(c, channels - CHANNELS);  // the last vector may overlap the one before it
        float16 sum = (float16)(0);
        for (int k = 0; k < count; ++k)
          sum = fma(LOAD16(TYPE, from, offset[k] + at), vload16(0, weights + weight[k] + at), sum);
        const float16 self = ADD_SELF ? vload16(0, end.self + at) : (float16)(0);
        STORE16(TYPE, to, at, ended_float16(sum, self, end));
      }
    }
  }
}
#else

// Grid: blocks of channels, rows of the window. Sums all positions in order.
ONE_ITEM __kernel void weight_channels(__global void *w_base, ulong w_offset, __global const void *big_base,
                                       ulong big_offset, __global const void *small_base, ulong small_offset,
                                       const ConvParams p) {
  const long first = get_global_id(0) * CHANNELS, c = min(first, p.groups - CHANNELS), ky = get_global_id(1);
  float16 sum[TAPS_X];
  UNROLL for (int k = 0; k < TAPS_X; ++k) sum[k] = (float16)(0);
  for (long r = 0; r < p.batch * p.out[1]; ++r) {
    const long n = r / p.out[1], y = r - n * p.out[1], at_y = place(y, ky, 1, p);
    if (at_y < 0) continue;
    __global const STYPE(TYPE) *big = AT_CONST(TYPE, big_base, big_offset) + n * p.big_strides[0] +
                                      at_y * p.big_strides[3] + c;
    __global const STYPE(TYPE) *small = AT_CONST(TYPE, small_base, small_offset) + n * p.small_strides[0] +
                                        y * p.small_strides[3] + c;
    for (long x = 0; x < p.out[2]; ++x) {
      const float16 slope = LOAD16(TYPE, small, x * p.small_strides[4]);
      UNROLL for (int k = 0; k < TAPS_X; ++k) {
        const long at = place(x, k, 2, p);
        if (at >= 0) sum[k] = fma(LOAD16(TYPE, big, at * p.big_strides[4]), slope, sum[k]);
      }
    }
  }
  __global STYPE(TYPE) *w = AT(TYPE, w_base, w_offset) + ky * p.weight_strides[3];
  UNROLL for (int k = 0; k < TAPS_X; ++k) {
    float lane[CHANNELS];
    vstore16(sum[k], 0, lane);
    for (long i = first - c; i < CHANNELS; ++i)
      STORE(TYPE, w, (c + i) * p.weight_strides[0] + k * p.weight_strides[4], lane[i]);
  }
}
#endif
