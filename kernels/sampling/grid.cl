// Sampling images (DIMS 2) and volumes (DIMS 3) of type A at the points of a grid, and the gradients. T: the
// type to compute in.
//   forward        a work-item takes a point and some channels
//   grid_gradient  a work-item takes a point
//   image_gradient for CPU drivers: a work-item takes some channels of an image and adds up all points, in
//                  type T
//   taps           for GPUs: the places that every point reads, as keys, and their weights; index/runs.cl
//                  then adds up by them
#include "types.h"
#include "range.h"
typedef CTYPE(A) T;
#include "grid_axis.h"
#define NOWHERE LONG_MAX
#if DIMS == 2
#define ALL_TAPS (TAPS * TAPS)
#else
#define ALL_TAPS (TAPS * TAPS * TAPS)
#endif

typedef struct {
  Axis axis[DIMS];  // innermost first
} Point;

INLINE Point point_of(__global const STYPE(A) *at, const GridParams p) {
  Point point;
  UNROLL for (int d = 0; d < DIMS; ++d) point.axis[d] = axis_of(LOAD(A, at, d), p.size[d], p);
  return point;
}

// Element and weight of tap k; -1 where it is outside.
typedef struct {
  long place;
  T weight;
} Tap;
INLINE Tap tap_of(const Point *point, int k, const GridParams p) {
  const int x = k % TAPS, y = k / TAPS % TAPS;
  Tap tap = {(long)point->axis[1].place[y] * p.size[0] + point->axis[0].place[x],
             point->axis[0].weight[x] * point->axis[1].weight[y]};
  bool inside = point->axis[0].place[x] >= 0 && point->axis[1].place[y] >= 0;
#if DIMS == 3
  const int z = k / (TAPS * TAPS);
  tap.place += (long)point->axis[2].place[z] * p.size[0] * p.size[1];
  tap.weight *= point->axis[2].weight[z];
  inside = inside && point->axis[2].place[z] >= 0;
#endif
  if (!inside) tap.place = -1;
  return tap;
}

GROUP __kernel void forward(__global void *out_base, ulong out_offset, __global const void *image_base,
                            ulong image_offset, __global const void *grid_base, ulong grid_offset,
                            const GridParams p) {
  __global const STYPE(A) *grid = AT_CONST(A, grid_base, grid_offset);
  const long shares = (p.channels + p.share - 1) / p.share;
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / p.points, at = i - row * p.points, n = row / shares,
               first = (row - n * shares) * p.share;
    const Point point = point_of(grid + (n * p.points + at) * DIMS, p);
    Tap taps[ALL_TAPS];
    UNROLL for (int k = 0; k < ALL_TAPS; ++k) taps[k] = tap_of(&point, k, p);
    for (long c = first; c < min(first + p.share, (long)p.channels); ++c) {
      __global const STYPE(A) *image =
          AT_CONST(A, image_base, image_offset) + (n * p.channels + c) * p.elements;
      T sum = 0;
      UNROLL for (int k = 0; k < ALL_TAPS; ++k)
        if (taps[k].place >= 0) sum += LOAD(A, image, taps[k].place) * taps[k].weight;
      STORE(A, AT(A, out_base, out_offset), (n * p.channels + c) * p.points + at, sum);
    }
  }
}

GROUP __kernel void grid_gradient(__global void *out_base, ulong out_offset,
                                  __global const void *gradient_base, ulong gradient_offset,
                                  __global const void *image_base, ulong image_offset,
                                  __global const void *grid_base, ulong grid_offset, const GridParams p) {
  __global const STYPE(A) *grid = AT_CONST(A, grid_base, grid_offset);
  FOR_EACH(i, p.pieces, p.per_item) {
    const long n = i / p.points, at = i - n * p.points;
    const Point point = point_of(grid + i * DIMS, p);
    Tap taps[ALL_TAPS];
    T dot[ALL_TAPS], slope[DIMS];
    UNROLL for (int k = 0; k < ALL_TAPS; ++k) {
      taps[k] = tap_of(&point, k, p);
      dot[k] = 0;
    }
    for (long c = 0; c < p.channels; ++c) {
      const long row = n * p.channels + c;
      __global const STYPE(A) *image = AT_CONST(A, image_base, image_offset) + row * p.elements;
      const T g = LOAD(A, AT_CONST(A, gradient_base, gradient_offset), row * p.points + at);
      UNROLL for (int k = 0; k < ALL_TAPS; ++k)
        if (taps[k].place >= 0) dot[k] += LOAD(A, image, taps[k].place) * g;
    }
    UNROLL for (int d = 0; d < DIMS; ++d) slope[d] = 0;
    UNROLL for (int k = 0; k < ALL_TAPS; ++k) {
      if (taps[k].place < 0) continue;
      const int own[3] = {k % TAPS, k / TAPS % TAPS, k / (TAPS * TAPS)};
      UNROLL for (int d = 0; d < DIMS; ++d) {
        T factor = point.axis[d].slope[own[d]];
        UNROLL for (int e = 0; e < DIMS; ++e)
          if (e != d) factor *= point.axis[e].weight[own[e]];
        slope[d] += factor * dot[k];
      }
    }
    UNROLL for (int d = 0; d < DIMS; ++d) STORE(A, AT(A, out_base, out_offset), i * DIMS + d, slope[d]);
  }
}

#if CPU_STYLE
ONE_ITEM __kernel void image_gradient(__global void *out_base, ulong out_offset,
                                      __global const void *gradient_base, ulong gradient_offset,
                                      __global const void *grid_base, ulong grid_offset, const GridParams p) {
  __global const STYPE(A) *gradient = AT_CONST(A, gradient_base, gradient_offset);
  __global const STYPE(A) *grid = AT_CONST(A, grid_base, grid_offset);
  const long shares = (p.channels + p.share - 1) / p.share;
  FOR_EACH(i, p.pieces, p.per_item) {
    const long n = i / shares, first = (i - n * shares) * p.share,
               end = min(first + p.share, (long)p.channels);
    __global T *out = (__global T *)((__global char *)out_base + out_offset) + n * p.channels * p.elements;
    for (long c = first * p.elements; c < end * p.elements; ++c) out[c] = 0;
    for (long at = 0; at < p.points; ++at) {
      const Point point = point_of(grid + (n * p.points + at) * DIMS, p);
      for (int k = 0; k < ALL_TAPS; ++k) {
        const Tap tap = tap_of(&point, k, p);
        if (tap.place < 0) continue;
        for (long c = first; c < end; ++c)
          out[c * p.elements + tap.place] +=
              LOAD(A, gradient, (n * p.channels + c) * p.points + at) * tap.weight;
      }
    }
  }
}
#else
__kernel void taps(__global void *key_base, ulong key_offset, __global void *weight_base, ulong weight_offset,
                   __global const void *grid_base, ulong grid_offset, const GridParams p) {
  __global long *keys = AT(i64, key_base, key_offset);
  __global T *weights = (__global T *)((__global char *)weight_base + weight_offset);
  FOR_EACH(i, p.pieces, p.per_item) {
    const Point point = point_of(AT_CONST(A, grid_base, grid_offset) + i * DIMS, p);
    UNROLL for (int k = 0; k < ALL_TAPS; ++k) {
      const Tap tap = tap_of(&point, k, p);
      keys[i * ALL_TAPS + k] = tap.place < 0 ? NOWHERE : i / p.points * p.elements + tap.place;
      weights[i * ALL_TAPS + k] = tap.weight;
    }
  }
}
#endif
