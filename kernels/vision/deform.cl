// Deformable convolution: columns of what taps read, [image][channel][tap][position], of type COLUMNS. A
// work-item takes a tap of a window, and some channels that share its offset.
#include "deform.h"

GROUP __kernel void columns(__global void *columns_base, ulong columns_offset,
                            __global const void *image_base, ulong image_offset,
                            __global const void *offset_base, ulong offset_offset,
                            __global const void *mask_base, ulong mask_offset, const DeformParams p) {
  const long plane = (long)p.size[0] * p.size[1], shares = (p.group_channels + p.share - 1) / p.share;
  const int taps = p.window[0] * p.window[1], positions = p.out[0] * p.out[1];
  FOR_EACH(i, p.pieces, p.per_item) {
    const long line = i / positions, part = line / taps, whole = part / shares;  // image * groups + group
    const int position = i - line * positions, k = line - part * taps;
    const long n = whole / p.groups, group = whole - n * p.groups, first = (part - whole * shares) * p.share;
    const Tap tap = tap_of(AT_CONST(A, offset_base, offset_offset), AT_CONST(A, mask_base, mask_offset),
                           ((p.first + n) * p.groups + group) * taps + k, position, p);
    const long channels = p.groups * p.group_channels, last = min(first + p.share, (long)p.group_channels);
    for (long c = group * p.group_channels + first; c < group * p.group_channels + last; ++c) {
      __global const STYPE(A) *image =
          AT_CONST(A, image_base, image_offset) + ((p.first + n) * channels + c) * plane;
      T sum = 0;
      for (int corner = 0; corner < 4; ++corner)
        if (tap.place[corner] >= 0) sum += weight_of(tap, corner) * LOAD(A, image, tap.place[corner]);
      STORE(COLUMNS, AT(COLUMNS, columns_base, columns_offset),
            ((n * channels + c) * taps + k) * positions + position, tap.mask * sum);
    }
  }
}
