// The elements that a grid's coordinate reads along one dimension: TAPS places, their weights, and the
// weights' derivatives by the coordinate. MODE: 0 linear, 1 nearest, 2 cubic. T is the type to compute in. A
// place outside is -1 and reads zero. A NaN coordinate is outside if padding is zeros; else it reads the
// first element. An infinite coordinate is treated as a far one; with reflection it reads the first element.
#ifndef OCLTENSOR_GRID_AXIS_H
#define OCLTENSOR_GRID_AXIS_H
#include "grid_params.h"
#define TAPS (MODE == 0 ? 2 : MODE == 1 ? 1 : 4)
#define ZEROS 0
#define REFLECTION 2

typedef struct {
  int place[TAPS];
  T weight[TAPS], slope[TAPS];
} Axis;

// Maps a coordinate into [0, size - 1], as p.padding says; multiplies *slope by the derivative.
INLINE T pad(T at, int size, const GridParams p, T *slope) {
  if (p.padding == ZEROS) return at;
  if (p.padding == REFLECTION) {
    const T low = p.align ? (T)0 : (T)-0.5f, span = p.align ? (T)(size - 1) : (T)size;
    if (span == 0) {
      *slope = 0;
      return 0;
    }
    const T distance = fabs(at - low), rest = fmod(distance, span);
    const bool turned = fmod(floor(distance / span), (T)2) != 0;
    if ((at < low) != turned) *slope = -*slope;
    at = low + (turned ? span - rest : rest);
  }
  if (at <= 0 || at >= size - 1) *slope = 0;
  return fmin(fmax(at, (T)0), (T)(size - 1));
}

INLINE int place_of(T whole, int size) { return whole >= 0 && whole <= size - 1 ? (int)whole : -1; }

INLINE Axis axis_of(T at, int size, const GridParams p) {
  Axis axis;
  T slope = p.align ? (T)(size - 1) / 2 : (T)size / 2;
  // In two statements, because a fused multiply-add would round unlike the other backends, and coordinates
  // far outside magnify the difference.
  const T scaled = (at + 1) * (p.align ? slope : (T)size);
  at = p.align ? scaled : (scaled - 1) / 2;
  if (isnan(at) || (p.padding == REFLECTION && isinf(at))) {
    at = p.padding == ZEROS ? (T)-8 : (T)0;
    slope = 0;
  }
  // Coordinates far outside give the same as those just outside.
  if (p.padding != REFLECTION) at = fmin(fmax(at, (T)-8), (T)size + 8);
#if MODE == 0
  at = pad(at, size, p, &slope);
  const T low = floor(at);
  axis.weight[0] = low + 1 - at;
  axis.weight[1] = at - low;
  axis.slope[0] = -slope;
  axis.slope[1] = slope;
  axis.place[0] = place_of(low, size);
  axis.place[1] = place_of(low + 1, size);
#elif MODE == 1
  at = pad(at, size, p, &slope);
  axis.weight[0] = 1;
  axis.slope[0] = 0;
  axis.place[0] = place_of(rint(at), size);
#else
  const T a = -0.75f, low = floor(at), t = at - low;
  UNROLL for (int k = 0; k < 4; ++k) {
    const T x = k < 2 ? t + 1 - k : k - 1 - t, side = k < 2 ? slope : -slope;
    if (k == 0 || k == 3) {
      axis.weight[k] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
      axis.slope[k] = ((3 * a * x - 10 * a) * x + 8 * a) * side;
    } else {
      axis.weight[k] = ((a + 2) * x - (a + 3)) * x * x + 1;
      axis.slope[k] = (3 * (a + 2) * x - 2 * (a + 3)) * x * side;
    }
    T ignored = 1;
    axis.place[k] = place_of(trunc(pad(low + (k - 1), size, p, &ignored)), size);
  }
#endif
  return axis;
}
#endif
