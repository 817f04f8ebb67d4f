// The taps of a place of the large side along a dimension: the places [first, first + count) of the small
// side that it reads, clamped to the dimension, and the weight of each. MODE: one of those below. T is the
// type to compute in, COMPUTE its name.
#ifndef OCLTENSOR_RESAMPLE_TAPS_H
#define OCLTENSOR_RESAMPLE_TAPS_H
#include "types.h"
#include "resample_params.h"
#define NEAREST 0
#define NEAREST_EXACT 1
#define LINEAR 2
#define CUBIC 3
#define LINEAR_SMOOTH 4  // antialiased: the filter is as wide as the step where the image shrinks
#define CUBIC_SMOOTH 5
#define LANCZOS_SMOOTH 6

typedef struct {
  int first, count;
#if MODE >= LINEAR_SMOOTH
  T center, shrink, total;
#elif MODE >= LINEAR
  T t;
#endif
} Taps;

#if MODE == CUBIC || MODE == CUBIC_SMOOTH
// Keys' cubic convolution.
INLINE T cubic(T x, T a) {
  x = fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : (T)0;
}
#endif

#if MODE == LANCZOS_SMOOTH
#ifdef cl_khr_fp64
#define PI_SQUARED 9.86960440108935861883
#else
#define PI_SQUARED 9.86960440f
#endif
// Lanczos' window of three lobes: sinc(x) sinc(x / 3).
INLINE T lanczos(T x) {
  if (fabs(x) >= 3) return 0;
  return x == 0 ? (T)1 : 3 * sinpi(x) * sinpi(x / 3) / (x * x * (T)PI_SQUARED);
}
#endif

// The filter's reach where the image does not shrink.
#define REACH (MODE == LANCZOS_SMOOTH ? 3 : MODE == CUBIC_SMOOTH ? 2 : 1)

INLINE T weight_of(Taps taps, int k) {
#if MODE <= NEAREST_EXACT
  return 1;
#elif MODE == LINEAR
  return k == 0 ? 1 - taps.t : taps.t;
#elif MODE == CUBIC
  return cubic(k - 1 - taps.t, -0.75f);
#else
  const T x = (taps.first + k - taps.center + 0.5f) * taps.shrink;
#if MODE == LINEAR_SMOOTH
  const T weight = fmax(1 - fabs(x), (T)0);
#elif MODE == LANCZOS_SMOOTH
  const T weight = lanczos(x);
#else
  const T weight = cubic(x, -0.5f);
#endif
  return taps.total != 0 ? weight / taps.total : weight;
#endif
}

// The taps of large place o, without the weights' total.
INLINE Taps range_of(const ResampleParams p, int o) {
  Taps taps;
#if MODE <= NEAREST_EXACT
  int at = (int)floor((MODE == NEAREST_EXACT ? o + 0.5f : (float)o) * as_float((uint)p.step));
  if (MODE == NEAREST && p.small == p.large) at = o;
  if (MODE == NEAREST && p.large == 2L * p.small) at = o / 2;
  taps.first = min(at, p.small - 1);
  taps.count = 1;
#else
  const T step = FROM_BITS(COMPUTE, p.step);
#if MODE <= CUBIC
  T at = p.align ? step * o : step * (o + (T)0.5f) - (T)0.5f;
#if MODE == LINEAR
  at = p.small == p.large ? (T)o : fmax(at, (T)0);
#endif
  const int low = min((int)floor(at), p.small - 1);
  taps.t = fmin(fmax(at - low, (T)0), (T)1);
  taps.first = MODE == LINEAR ? low : low - 1;
  taps.count = MODE == LINEAR ? 2 : 4;
#else
  const T widening = fmax(step, (T)1), support = REACH * widening;
  taps.center = step * (o + (T)0.5f);
  taps.shrink = 1 / widening;
  taps.first = max((int)(taps.center - support + (T)0.5f), 0);
  taps.count = max(min((int)(taps.center + support + (T)0.5f), p.small) - taps.first, 0);
  if (p.small == p.large) {  // reads no other places, whose values may be infinite
    taps.first = o;
    taps.count = 1;
    taps.center = o + (T)0.5f;
    taps.shrink = 1;
  }
  taps.total = 0;
#endif
#endif
  return taps;
}

INLINE Taps taps_of(const ResampleParams p, int o) {
  Taps taps = range_of(p, o);
#if MODE >= LINEAR_SMOOTH
  T total = 0;
  for (int k = 0; k < taps.count; ++k) total += weight_of(taps, k);
  taps.total = total;
#endif
  return taps;
}

// The place of tap k. With equal sizes, linear taps read one place twice, as in ATen.
INLINE int place_of(const ResampleParams p, Taps taps, int k) {
  if (MODE == LINEAR && p.small == p.large) k = 0;
  return clamp(taps.first + k, 0, p.small - 1);
}

// The weight with which a large place that has these taps reads small place i. Several taps may read the same
// place only at the ends, by clamping.
INLINE T share_of(const ResampleParams p, Taps taps, int i) {
#if MODE == LINEAR || MODE == CUBIC
  if (i == 0 || i == p.small - 1 || p.small == p.large) {
    T share = 0;
    for (int k = 0; k < taps.count; ++k)
      if (place_of(p, taps, k) == i) share += weight_of(taps, k);
    return share;
  }
#endif
  return weight_of(taps, i - taps.first);
}

// True if all places that these taps read come before small place i; for a binary search, because the taps
// rise with the large place.
INLINE bool ends_before(const ResampleParams p, Taps taps, int i) {
  return taps.count > 0 ? place_of(p, taps, taps.count - 1) < i : taps.first <= i;
}
INLINE bool begins_behind(Taps taps, int i) { return taps.first > i; }
INLINE int first_reader(const ResampleParams p, int i) {
  int low = 0, high = p.large;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ends_before(p, range_of(p, middle), i)) low = middle + 1;
    else high = middle;
  }
  return low;
}
#endif
