// Data direction with few channels in a group and a stride of 2 along the rows, for CPU drivers: even and odd
// columns of the big map are vectors along the rows of the small one, interleaved as they are stored, so that
// no zero is multiplied. A work-item takes a run of (image, group) planes. Defines: TYPE, WINDOW (columns of
// the window), ODD (padding[2] & 1), ADD_SELF (1: there is a bias).
#include "conv_params.h"
#define STRIDE 2
#include "row_vectors.h"
#include "transpose.h"
#define SELF_TYPE TYPE
#include "epilogue.h"
END_OF_VECTORS(float16)

// Adds the products of one row of the window; shift: where a column of the window begins to read.
INLINE void add_row(float16 sum[2], __global const float *x, __global const STYPE(TYPE) *w, const long *shift,
                    long w_col) {
  UNROLL for (int k = 0; k < WINDOW; ++k)
    sum[(k + ODD) & 1] =
        fma(vload16(0, x + shift[k]), (float16)(LOAD(TYPE, w, k * w_col)), sum[(k + ODD) & 1]);
}

// x is the small map with zeros beside its rows; x_start: element (0, 0).
ONE_ITEM __kernel void grouped_data(__global void *y_base, ulong y_offset, __global const void *x_base,
                                    ulong x_offset, __global const void *w_base, ulong w_offset,
                                    __global const void *bias_base, ulong bias_offset, const ConvParams p,
                                    const long x_start, const long x_image, const long x_channel,
                                    const long x_row, const long per_item) {
  const long planes = p.batch * p.groups * p.big_channels;
  const long z0 = get_global_id(0) * per_item, z1 = min(planes, z0 + per_item);
  long shift[WINDOW];
  UNROLL for (int k = 0; k < WINDOW; ++k) shift[k] = (((k + ODD) & 1) + p.padding[2] - k) / 2;
  const Epilogue end = epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride);
  for (long z = z0; z < z1; ++z) {
    const long channels = p.groups * p.big_channels, n = z / channels, channel = z - n * channels;
    const long g = channel / p.big_channels, first = g * p.small_channels;
    const float16 self = (float16)(self_at(channel, 0, end));
    __global STYPE(TYPE) *y =
        AT(TYPE, y_base, y_offset) + n * p.big_strides[0] + channel * p.big_strides[1];
    __global const float *x = AT_CONST(f32, x_base, x_offset) + x_start + n * x_image + first * x_channel;
    __global const STYPE(TYPE) *w = AT_CONST(TYPE, w_base, w_offset) + first * p.weight_strides[0] +
                                    (channel - g * p.big_channels) * p.weight_strides[1];
    long tap = p.padding[1] % p.stride[1], row = p.padding[1] / p.stride[1];  // the first that meet row h
    for (long h = 0; h < p.in[1]; ++h) {
      for (long c = 0; 2 * c < p.in[2]; c += 16) {
        float16 sum[2] = {(float16)(0), (float16)(0)};
        for (long i = 0; i < p.small_channels; ++i) {
          long r = row;
          for (long k = tap; k < p.window[1]; k += p.stride[1], --r)
            if (r >= 0 && r < p.out[1])
              add_row(sum, x + i * x_channel + r * x_row + c,
                      w + i * p.weight_strides[0] + k * p.weight_strides[3], shift, p.weight_strides[4]);
        }
        UNROLL for (int odd = 0; odd < 2; ++odd) sum[odd] = ended_float16(sum[odd], self, end);
        __global STYPE(TYPE) *to = y + h * p.big_strides[3] + 2 * c * p.big_strides[4];
        const long left = p.in[2] - 2 * c;
        store_row(INTERLEAVE_LOW(sum[0], sum[1]), to, p.big_strides[4], left);
        if (left > 16)
          store_row(INTERLEAVE_HIGH(sum[0], sum[1]), to + 16 * p.big_strides[4], p.big_strides[4], left - 16);
      }
      if (++tap == p.stride[1]) {
        tap = 0;
        ++row;
      }
    }
  }
}
