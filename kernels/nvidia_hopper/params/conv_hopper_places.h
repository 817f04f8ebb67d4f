// The places of windows, taps and results of a product of convolution.cl; also for tests on the host.
#ifndef OCLTENSOR_CONV_HOPPER_PLACES_H
#define OCLTENSOR_CONV_HOPPER_PLACES_H
#include "conv_hopper_params.h"
#ifdef __OPENCL_VERSION__
#include "types.h"
#define CONV_INLINE INLINE
#else
#define CONV_INLINE inline
#endif

// Tap `tap`: its distance in pixels from the window's begin, and its number among the weight's taps.
typedef struct {
  tk_i32 dx, dy, line;
} ConvTap;
CONV_INLINE ConvTap conv_tap_at(tk_i32 tap, const ConvHopperParams p) {
  const tk_i32 r = tap / p.row_taps, s = tap - r * p.row_taps;
  ConvTap t;
  t.dx = s * p.delta_x;
  t.dy = r * p.delta_y;
  t.line = p.first_tap + r * p.tap_step_y + s * p.tap_step_x;
  return t;
}

// A position: its image, row and column, and the begin of its window.
typedef struct {
  tk_i32 image, i, j, y, x;
} ConvWindow;
CONV_INLINE ConvWindow conv_window_at(tk_i32 position, const ConvHopperParams p) {
  const tk_i32 image = position / p.positions, in_image = position - image * p.positions,
               i = in_image / p.row_positions;
  ConvWindow w;
  w.image = image;
  w.i = i;
  w.j = in_image - i * p.row_positions;
  w.y = w.i * p.step_y + p.low_y;
  w.x = w.j * p.step_x + p.low_x;
  return w;
}
CONV_INLINE tk_i64 conv_result_at(tk_i32 position, const ConvHopperParams p) {
  const ConvWindow w = conv_window_at(position, p);
  return w.image * p.out_image + w.i * p.out_y + w.j * p.out_x;
}
#endif
