// Copies maps into float memory with a border of zeros, for the convolutions of CPU drivers.
// Defines: TYPE; SAME_TYPE (1 if TYPE is float).
#include "conv_rows_params.h"
#include "types.h"

INLINE void zeros(__global float *p, long n) {
  for (long i = 0; i < n; ++i) p[i] = 0;
}

// Copies n contiguous elements; the last vector overlaps the one before it.
INLINE void copy_row(__global float *to, __global const STYPE(TYPE) *from, long n) {
  long i = 0;
  if (n >= 16) {
    for (; i + 16 <= n; i += 16) STORE16(f32, to, i, LOAD16(TYPE, from, i));
    if (i < n) STORE16(f32, to, n - 16, LOAD16(TYPE, from, n - 16));
    return;
  }
#if SAME_TYPE
  if (n >= 8) {
    vstore8(vload8(0, from), 0, to);
    vstore8(vload8(0, from + n - 8), 0, to + n - 8);
    return;
  }
  if (n >= 4) {
    vstore4(vload4(0, from), 0, to);
    vstore4(vload4(0, from + n - 4), 0, to + n - 4);
    return;
  }
#endif
  ROLLED for (; i < n; ++i) to[i] = LOAD(TYPE, from, i);
}

ONE_ITEM __kernel void pad(__global void *to_base, ulong to_offset, __global const void *from_base,
                           ulong from_offset, const PadParams p) {
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
      if (p.col == 1) copy_row(to + c0, from + c0 + p.left, c1 - c0);
      else for (long c = c0; c < c1; ++c) to[c] = LOAD(TYPE, from, (c + p.left) * p.col);
      zeros(to + c1, p.padded_width - c1);
    }
  }
}
