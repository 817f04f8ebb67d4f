// Copies maps into float memory with a border of zeros, for the convolutions of CPU drivers. Defines: TYPE.
#include "conv_rows_params.h"
#include "types.h"

INLINE void zeros(__global float *p, long n) {
  for (long i = 0; i < n; ++i) p[i] = 0;
}

ONE_ITEM __kernel void pad(__global void *to_base, ulong to_offset, __global const void *from_base, ulong from_offset,
                           const PadParams p) {
  const long z0 = get_global_id(0) * p.planes_per_item, z1 = min((long)p.planes, z0 + p.planes_per_item);
  for (long z = z0; z < z1; ++z) {
    const long n = z / p.channels;
    __global const STYPE(TYPE) *plane =
        AT_CONST(TYPE, from_base, from_offset) + n * p.image + (z - n * p.channels) * p.channel;
    __global float *to = AT(f32, to_base, to_offset) + z * p.padded_height * p.padded_width;
    for (long r = 0; r < p.padded_height; ++r, to += p.padded_width) {
      const long t = r + p.top, y = t / p.spread_y;
      if (t < 0 || y * p.spread_y != t || y >= p.height) {
        zeros(to, p.padded_width);
        continue;
      }
      __global const STYPE(TYPE) *from = plane + y * p.row;
      if (p.spread_x != 1) {
        zeros(to, p.padded_width);
        for (long x = 0; x < p.width; ++x) {
          const long c = x * p.spread_x - p.left;
          if (c >= 0 && c < p.padded_width) to[c] = LOAD(TYPE, from, x * p.col);
        }
        continue;
      }
      const long c0 = clamp(-p.left, 0L, (long)p.padded_width);
      const long c1 = clamp(p.width - p.left, c0, (long)p.padded_width);
      zeros(to, c0);
      long c = c0;
      if (p.col == 1)
        for (; c + 16 <= c1; c += 16) vstore16(LOAD16(TYPE, from, c + p.left), 0, to + c);
      for (; c < c1; ++c) to[c] = LOAD(TYPE, from, (c + p.left) * p.col);
      zeros(to + c1, p.padded_width - c1);
    }
  }
}
