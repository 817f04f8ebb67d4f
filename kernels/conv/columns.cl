// Convolution as a product of matrices: windows to columns, and columns back to sums over the windows that hold an element.
// Columns are [image][channel][tap][position]. Items stride over positions: one on CPU drivers, one a position on GPUs.
// Defines: TYPE (of the map), FLOATING; COLUMNS (type of the columns); HAS_BIAS.
#include "accumulator.h"
#include "conv_params.h"

// Grid: positions, channels * taps, images.
__kernel void to_columns(__global void *columns_base, ulong columns_offset, __global const void *big_base,
                         ulong big_offset, const ConvParams p, const long first_image) {
  const long taps = p.window[0] * p.window[1] * p.window[2], positions = p.out[0] * p.out[1] * p.out[2];
  const long row = get_global_id(1), c = row / taps, tap = row - c * taps, n = get_global_id(2);
  const long kx = tap % p.window[2], ky = tap / p.window[2] % p.window[1], kz = tap / p.window[2] / p.window[1];
  __global const STYPE(TYPE) *big =
      AT_CONST(TYPE, big_base, big_offset) + (first_image + n) * p.big_strides[0] + c * p.big_strides[1];
  __global STYPE(COLUMNS) *columns =
      AT(COLUMNS, columns_base, columns_offset) + (n * (long)get_global_size(1) + row) * positions;
  for (long o = get_global_id(0); o < positions; o += get_global_size(0)) {
    const long line = o / p.out[2], x = (o - line * p.out[2]) * p.stride[2] - p.padding[2] + kx * p.dilation[2];
    const long y = line % p.out[1] * p.stride[1] - p.padding[1] + ky * p.dilation[1];
    const long z = line / p.out[1] * p.stride[0] - p.padding[0] + kz * p.dilation[0];
    const bool inside = x >= 0 && x < p.in[2] && y >= 0 && y < p.in[1] && z >= 0 && z < p.in[0];
    CTYPE(TYPE) v = 0;
    if (inside) v = LOAD(TYPE, big, z * p.big_strides[2] + y * p.big_strides[3] + x * p.big_strides[4]);
    STORE(COLUMNS, columns, o, TO(COLUMNS, v));
  }
}

// The window position whose tap k lies on element i of dimension d, or -1.
INLINE long tap_position(const ConvParams p, int d, long i, long k) {
  const long t = i + p.padding[d] - k * p.dilation[d], o = t / p.stride[d];
  return t >= 0 && o * p.stride[d] == t && o < p.out[d] ? o : -1;
}

// Grid: elements of a map, channels, images.
__kernel void from_columns(__global void *big_base, ulong big_offset, __global const void *columns_base,
                           ulong columns_offset, __global const void *bias_base, ulong bias_offset,
                           const ConvParams p, const long first_image) {
  const long taps = p.window[0] * p.window[1] * p.window[2], positions = p.out[0] * p.out[1] * p.out[2];
  const long c = get_global_id(1), n = get_global_id(2), elements = p.in[0] * p.in[1] * p.in[2];
  __global const STYPE(COLUMNS) *columns = AT_CONST(COLUMNS, columns_base, columns_offset) +
                                           (n * (long)get_global_size(1) + c) * taps * positions;
  __global STYPE(TYPE) *big =
      AT(TYPE, big_base, big_offset) + (first_image + n) * p.big_strides[0] + c * p.big_strides[1];
  for (long i = get_global_id(0); i < elements; i += get_global_size(0)) {
    const long line = i / p.in[2], ix = i - line * p.in[2], iy = line % p.in[1], iz = line / p.in[1];
    acc_t sum = 0;
    for (long kz = 0; kz < p.window[0]; ++kz) {
      const long z = tap_position(p, 0, iz, kz);
      if (z < 0) continue;
      for (long ky = 0; ky < p.window[1]; ++ky) {
        const long y = tap_position(p, 1, iy, ky);
        if (y < 0) continue;
        for (long kx = 0; kx < p.window[2]; ++kx) {
          const long x = tap_position(p, 2, ix, kx);
          if (x < 0) continue;
          const long tap = (kz * p.window[1] + ky) * p.window[2] + kx;
          sum += LOAD(COLUMNS, columns, tap * positions + (z * p.out[1] + y) * p.out[2] + x);
        }
      }
    }
#if HAS_BIAS
    sum += LOAD(TYPE, AT_CONST(TYPE, bias_base, bias_offset), c * p.bias_stride);
#endif
    STORE(TYPE, big, iz * p.big_strides[2] + iy * p.big_strides[3] + ix * p.big_strides[4], TO(TYPE, sum));
  }
}
