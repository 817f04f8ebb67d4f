// The taps of deformable convolution: each reads between elements, where its offset says. A: the type of
// images, offsets and masks; MASKED: what a tap reads has a factor.
#ifndef OCLTENSOR_DEFORM_H
#define OCLTENSOR_DEFORM_H
#include "types.h"
#include "range.h"
#include "deform_params.h"
typedef CTYPE(A) T;

// A tap of a window, and the elements around the place that it reads: -1 where there is none.
typedef struct {
  int place[4];  // upper left, upper right, lower left, lower right
  T down, right;  // distances from the upper left
  T mask;
} Tap;

INLINE T weight_of(const Tap tap, int corner) {
  return (corner < 2 ? 1 - tap.down : tap.down) * (corner % 2 == 0 ? 1 - tap.right : tap.right);
}

// `row`: (image * groups + group) * taps + tap.
INLINE Tap tap_of(__global const STYPE(A) *offset, __global const STYPE(A) *mask, long row, int position,
                  const DeformParams p) {
  const int taps = p.window[0] * p.window[1], positions = p.out[0] * p.out[1];
  const int k = row % taps, ky = k / p.window[1], kx = k - ky * p.window[1];
  const int oy = position / p.out[1], ox = position - oy * p.out[1];
  __global const STYPE(A) *own = offset + 2 * row * positions + position;
  const T y = oy * p.stride[0] - p.padding[0] + ky * p.dilation[0] + LOAD(A, own, 0);
  const T x = ox * p.stride[1] - p.padding[1] + kx * p.dilation[1] + LOAD(A, own, positions);
  const T top = floor(y), left = floor(x);
  Tap tap;
  tap.down = y - top;
  tap.right = x - left;
  for (int corner = 0; corner < 4; ++corner) {
    const T cy = top + corner / 2, cx = left + corner % 2;
    const bool inside = cy >= 0 && cy < p.size[0] && cx >= 0 && cx < p.size[1];
    tap.place[corner] = inside ? (int)cy * p.size[1] + (int)cx : -1;
  }
#if MASKED
  tap.mask = LOAD(A, mask, row * positions + position);
#else
  tap.mask = 1;
#endif
  return tap;
}
#endif
