// Copies maps into float memory with a border of zeros, for the convolutions of CPU drivers. In
// channels_last maps 16 channels of a position are one vector.
// Defines: TYPE; SAME_TYPE (1 if TYPE is float).
#include "conv_rows_params.h"
#include "transpose.h"

INLINE void zeros(__global float *p, long n) {
  ROLLED for (; n >= 16; n -= 16, p += 16) STORE16(f32, p, 0, (float16)(0));
  ROLLED for (long i = 0; i < n; ++i) p[i] = 0;
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

// Columns [c0, c1) of a row of 16 neighbouring planes, whose channels are neighbours in memory.
INLINE void copy_channels(__global float *to, long plane, __global const STYPE(TYPE) *from, long col, long c0,
                          long c1) {
  long c = c0;
  for (; c + 8 <= c1; c += 8) {
    float16 r[8];
    UNROLL for (int i = 0; i < 8; ++i) r[i] = LOAD16(TYPE, from, (c + i) * col);
    transpose8(r);
    UNROLL for (int k = 0; k < 8; ++k) {
      vstore8(r[k].lo, 0, to + 2 * k * plane + c);
      vstore8(r[k].hi, 0, to + (2 * k + 1) * plane + c);
    }
  }
  ROLLED for (; c < c1; ++c) {
    float lane[16];
    vstore16(LOAD16(TYPE, from, c * col), 0, lane);
    for (int k = 0; k < 16; ++k) to[k * plane + c] = lane[k];
  }
}

// Row r of `count` (1 or 16) padded planes at `to`.
INLINE void pad_row(__global float *to, __global const STYPE(TYPE) *plane, long r, int count,
                    const PadParams p) {
  const long t = r + p.top, size = p.padded_height * p.padded_width;
  const long y = p.spread_y == 1 ? t : t / p.spread_y;  // a division is most of a short row's time
  const bool empty = t < 0 || (p.spread_y != 1 && y * p.spread_y != t) || y >= p.height;
  const long c0 = empty ? p.padded_width : clamp(-p.left, 0L, (long)p.padded_width);
  const long c1 = empty ? c0 : clamp(p.width - p.left, c0, (long)p.padded_width);
  __global const STYPE(TYPE) *from = plane + y * p.row;
  if (p.spread_x != 1) {
    zeros(to, p.padded_width);
    for (long x = 0; !empty && x < p.width; ++x) {
      const long c = x * p.spread_x - p.left;
      if (c >= 0 && c < p.padded_width) to[c] = LOAD(TYPE, from, x * p.col);
    }
    return;
  }
  for (int k = 0; k < count; ++k) {
    zeros(to + k * size, c0);
    zeros(to + k * size + c1, p.padded_width - c1);
  }
  if (count > 1) copy_channels(to, size, from + p.left * p.col, p.col, c0, c1);
  else if (p.col == 1) copy_row(to + c0, from + c0 + p.left, c1 - c0);
  else for (long c = c0; c < c1; ++c) to[c] = LOAD(TYPE, from, (c + p.left) * p.col);
}

// Grid: runs of planes, runs of rows.
ONE_ITEM __kernel void pad(__global void *to_base, ulong to_offset, __global const void *from_base,
                           ulong from_offset, const PadParams p) {
  const long z0 = get_global_id(0) * p.planes_per_item, z1 = min((long)p.planes, z0 + p.planes_per_item);
  const long r0 = get_global_id(1) * p.rows_per_item, r1 = min((long)p.padded_height, r0 + p.rows_per_item);
  int count;
  for (long z = z0; z < z1; z += count) {
    const long n = z / p.channels, channel = z - n * p.channels;
    count = p.channel == 1 && p.spread_x == 1 && min(z1 - z, p.channels - channel) >= 16 ? 16 : 1;
    __global const STYPE(TYPE) *plane =
        AT_CONST(TYPE, from_base, from_offset) + n * p.image + channel * p.channel;
    __global float *to = AT(f32, to_base, to_offset) + z * p.padded_height * p.padded_width;
    for (long r = r0; r < r1; ++r) pad_row(to + r * p.padded_width, plane, r, count, p);
  }
}
