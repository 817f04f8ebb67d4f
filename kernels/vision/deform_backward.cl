// Gradients of deformable convolution from those of its columns, [image][channel][tap][position] of type
// COLUMNS.
//   slopes          of offsets and masks: a work-item takes a tap of a window
//   image_gradient  for CPU drivers: a work-item takes some channels of a pass's image and adds up all taps,
//                   in type T
//   taps            for GPUs: the places that every tap reads, as keys, and their weights; index/runs.cl then
//                   adds up by them
#include "deform.h"
#define NOWHERE LONG_MAX

GROUP __kernel void slopes(__global void *slope_base, ulong slope_offset, __global void *factor_base,
                           ulong factor_offset, __global const void *columns_base, ulong columns_offset,
                           __global const void *image_base, ulong image_offset,
                           __global const void *offset_base, ulong offset_offset,
                           __global const void *mask_base, ulong mask_offset, const DeformParams p) {
  const long plane = (long)p.size[0] * p.size[1], channels = p.groups * p.group_channels;
  const int taps = p.window[0] * p.window[1], positions = p.out[0] * p.out[1];
  FOR_EACH(i, p.pieces, p.per_item) {
    const long line = i / positions, whole = line / taps;
    const int position = i - line * positions, k = line - whole * taps;
    const long n = whole / p.groups, group = whole - n * p.groups;
    const long row = ((p.first + n) * p.groups + group) * taps + k;
    const Tap tap = tap_of(AT_CONST(A, offset_base, offset_offset), AT_CONST(A, mask_base, mask_offset), row,
                           position, p);
    T down = 0, right = 0, factor = 0;
    for (long c = group * p.group_channels; c < (group + 1) * p.group_channels; ++c) {
      __global const STYPE(A) *image =
          AT_CONST(A, image_base, image_offset) + ((p.first + n) * channels + c) * plane;
      const T g = LOAD(COLUMNS, AT_CONST(COLUMNS, columns_base, columns_offset),
                       ((n * channels + c) * taps + k) * positions + position);
      T v[4];
      for (int corner = 0; corner < 4; ++corner)
        v[corner] = tap.place[corner] >= 0 ? LOAD(A, image, tap.place[corner]) : (T)0;
      down += g * (tap.right * (v[3] - v[1]) + (1 - tap.right) * (v[2] - v[0]));
      right += g * (tap.down * (v[3] - v[2]) + (1 - tap.down) * (v[1] - v[0]));
#if MASKED
      T sum = 0;
      for (int corner = 0; corner < 4; ++corner) sum += weight_of(tap, corner) * v[corner];
      factor += g * sum;
#endif
    }
    STORE(A, AT(A, slope_base, slope_offset), 2 * row * positions + position, tap.mask * down);
    STORE(A, AT(A, slope_base, slope_offset), (2 * row + 1) * positions + position, tap.mask * right);
#if MASKED
    STORE(A, AT(A, factor_base, factor_offset), row * positions + position, factor);
#endif
  }
}

#if CPU_STYLE
ONE_ITEM __kernel void image_gradient(__global void *out_base, ulong out_offset,
                                      __global const void *columns_base, ulong columns_offset,
                                      __global const void *offset_base, ulong offset_offset,
                                      __global const void *mask_base, ulong mask_offset,
                                      const DeformParams p) {
  __global const STYPE(COLUMNS) *columns = AT_CONST(COLUMNS, columns_base, columns_offset);
  const long plane = (long)p.size[0] * p.size[1], shares = (p.group_channels + p.share - 1) / p.share;
  const long channels = p.groups * p.group_channels;
  const int taps = p.window[0] * p.window[1], positions = p.out[0] * p.out[1];
  FOR_EACH(i, p.pieces, p.per_item) {
    const long whole = i / shares, n = whole / p.groups, group = whole - n * p.groups;
    const long low = (i - whole * shares) * p.share, high = min(low + p.share, (long)p.group_channels);
    const long first = n * channels + group * p.group_channels + low, end = first + high - low;
    __global T *out = (__global T *)((__global char *)out_base + out_offset);
    for (long e = first * plane; e < end * plane; ++e) out[e] = 0;
    for (int k = 0; k < taps; ++k)
      for (int position = 0; position < positions; ++position) {
        const Tap tap = tap_of(AT_CONST(A, offset_base, offset_offset), AT_CONST(A, mask_base, mask_offset),
                               ((p.first + n) * p.groups + group) * taps + k, position, p);
        for (int corner = 0; corner < 4; ++corner) {
          if (tap.place[corner] < 0) continue;
          const T weight = tap.mask * weight_of(tap, corner);
          for (long c = first; c < end; ++c)
            out[c * plane + tap.place[corner]] +=
                weight * LOAD(COLUMNS, columns, (c * taps + k) * positions + position);
        }
      }
  }
}
#else
__kernel void taps(__global void *key_base, ulong key_offset, __global void *weight_base, ulong weight_offset,
                   __global const void *offset_base, ulong offset_offset, __global const void *mask_base,
                   ulong mask_offset, const DeformParams p) {
  __global long *keys = AT(i64, key_base, key_offset);
  __global T *weights = (__global T *)((__global char *)weight_base + weight_offset);
  const long plane = (long)p.size[0] * p.size[1];
  const int all = p.window[0] * p.window[1], positions = p.out[0] * p.out[1];
  FOR_EACH(i, p.pieces, p.per_item) {
    const long line = i / positions, n = line / all;
    const int position = i - line * positions, k = line - n * all;
    const Tap tap = tap_of(AT_CONST(A, offset_base, offset_offset), AT_CONST(A, mask_base, mask_offset),
                           ((p.first + n) * p.groups + p.group) * all + k, position, p);
    for (int corner = 0; corner < 4; ++corner) {
      keys[4 * i + corner] = tap.place[corner] < 0 ? NOWHERE : n * plane + tap.place[corner];
      weights[4 * i + corner] = tap.mask * weight_of(tap, corner);
    }
  }
}
#endif
