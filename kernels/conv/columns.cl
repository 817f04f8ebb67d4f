// Convolution as a matrix product (im2col and col2im): copies windows to columns, and adds columns up to the
// elements that their windows hold. Columns are [channel][tap][position] with any stride between rows and
// between images. On GPUs the work-items of a work-group stride over the positions of one row of one image;
// on CPU drivers one work-item takes them all.
// The numbers of positions and elements of one image fit 32 bits (columns.cpp declines more), because GPUs
// divide 32-bit integers several times faster.
// Defines: TYPE (of the map), FLOATING; COLUMNS (type of the columns); ADD_SELF (1: there is a bias).
#include "accumulator.h"
#include "conv_params.h"
#define RESULT TYPE
#define SELF_TYPE TYPE
#include "epilogue.h"

// a / b, by multiplication with 1 / b where that is exact: the product's error is below half of 1 / b.
INLINE int quotient(int a, int b, float inverse) {
  return a < (1 << 20) ? (int)((a + 0.5f) * inverse) : a / b;
}

// Grid: positions, channels * taps, images. Strides in elements.
__kernel void to_columns(__global void *columns_base, ulong columns_offset, __global const void *big_base,
                         ulong big_offset, const long first_image, const long row_stride,
                         const long image_stride, const ConvParams p) {
  const int window_y = p.window[1], window_x = p.window[2], taps = p.window[0] * window_y * window_x;
  const int out_y = p.out[1], out_x = p.out[2], positions = p.out[0] * out_y * out_x;
  const int row = get_group_id(1), c = row / taps, tap = row - c * taps;
  const int kx = tap % window_x, ky = tap / window_x % window_y, kz = tap / window_x / window_y;
  const long n = get_group_id(2);
  const float inverse_x = 1.0f / out_x, inverse_y = 1.0f / out_y;
  __global const STYPE(TYPE) *big =
      AT_CONST(TYPE, big_base, big_offset) + (first_image + n) * p.big_strides[0] + c * p.big_strides[1];
  __global STYPE(COLUMNS) *columns =
      AT(COLUMNS, columns_base, columns_offset) + n * image_stride + row * row_stride;
  const int step = get_global_size(0);
  for (int o = get_global_id(0); o < positions; o += step) {
    const int line = quotient(o, out_x, inverse_x), plane = quotient(line, out_y, inverse_y);
    const long x = (o - line * out_x) * p.stride[2] - p.padding[2] + kx * p.dilation[2];
    const long y = (line - plane * out_y) * p.stride[1] - p.padding[1] + ky * p.dilation[1];
    const long z = plane * p.stride[0] - p.padding[0] + kz * p.dilation[0];
    const bool inside = x >= 0 && x < p.in[2] && y >= 0 && y < p.in[1] && z >= 0 && z < p.in[0];
    CTYPE(TYPE) v = 0;
    if (inside) v = LOAD(TYPE, big, z * p.big_strides[2] + y * p.big_strides[3] + x * p.big_strides[4]);
    STORE(COLUMNS, columns, o, TO(COLUMNS, v));
  }
}

// The window position whose tap k reads element i of dimension d; -1 if there is none.
INLINE int tap_position(const ConvParams p, int d, int i, int k) {
  const int stride = p.stride[d], t = i + (int)p.padding[d] - k * (int)p.dilation[d], o = t / stride;
  return t >= 0 && o * stride == t && o < (int)p.out[d] ? o : -1;
}

// Grid: elements of a map, channels, images.
__kernel void from_columns(__global void *big_base, ulong big_offset, __global const void *columns_base,
                           ulong columns_offset, __global const void *bias_base, ulong bias_offset,
                           const long first_image, const ConvParams p) {
  const int window_z = p.window[0], window_y = p.window[1], window_x = p.window[2],
            taps = window_z * window_y * window_x;
  const int out_y = p.out[1], out_x = p.out[2], positions = p.out[0] * out_y * out_x;
  const int in_y = p.in[1], in_x = p.in[2], elements = p.in[0] * in_y * in_x;
  const long c = get_global_id(1), n = get_global_id(2);
  __global const STYPE(COLUMNS) *columns = AT_CONST(COLUMNS, columns_base, columns_offset) +
                                           (n * (long)get_global_size(1) + c) * taps * positions;
  __global STYPE(TYPE) *big =
      AT(TYPE, big_base, big_offset) + (first_image + n) * p.big_strides[0] + c * p.big_strides[1];
  const Epilogue end = epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride);
  const int step = get_global_size(0);
  for (int i = get_global_id(0); i < elements; i += step) {
    const int line = i / in_x, iz = line / in_y, ix = i - line * in_x, iy = line - iz * in_y;
    acc_t sum = 0;
    for (int kz = 0; kz < window_z; ++kz) {
      const int z = tap_position(p, 0, iz, kz);
      if (z < 0) continue;
      for (int ky = 0; ky < window_y; ++ky) {
        const int y = tap_position(p, 1, iy, ky);
        if (y < 0) continue;
        for (int kx = 0; kx < window_x; ++kx) {
          const int x = tap_position(p, 2, ix, kx);
          if (x < 0) continue;
          const int tap = (kz * window_y + ky) * window_x + kx;
          sum += LOAD(COLUMNS, columns, (long)tap * positions + (z * out_y + y) * out_x + x);
        }
      }
    }
    STORE(TYPE, big, iz * p.big_strides[2] + iy * p.big_strides[3] + ix * p.big_strides[4],
          TO(TYPE, ended(sum, c, 0, end)));
  }
}
