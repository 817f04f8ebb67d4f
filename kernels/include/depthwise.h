// What the direct convolutions for GPUs share. A work-item has a strip of ROWS positions of one column, so
// that adjacent work-items read adjacent columns, and a row that several windows contain is read once.
// Defines: TYPE, FLOATING, WIDE (accumulator.h); WINDOW (3, 5, 7: its height and width, not dilated, with
// STRIDE in both directions; 0: any geometry); ROWS; CHANNELS_LAST (1: channels are contiguous, and adjacent
// work-items take adjacent channels).
#ifndef OCLTENSOR_DEPTHWISE_H
#define OCLTENSOR_DEPTHWISE_H
#include "accumulator.h"
#include "conv_params.h"
#define T STYPE(TYPE)

typedef struct {
  int x, y, channel, n;  // y: the first row
} Strip;

// Strip i of a map.
INLINE Strip strip_of(uint i, uint width, uint height, uint channels) {
  const uint blocks = (height + ROWS - 1) / ROWS;
  Strip s;
#if CHANNELS_LAST
  const uint column = i / channels, block = column / width, n = block / blocks;
  s.channel = i - column * channels;
  s.x = column - block * width;
  s.y = (block - n * blocks) * ROWS;
  s.n = n;
#else
  const uint block = i / width, plane = block / blocks;
  s.x = i - block * width;
  s.y = (block - plane * blocks) * ROWS;
  s.n = plane / channels;
  s.channel = plane - s.n * channels;
#endif
  return s;
}

INLINE bool is_inside(int i, long size) { return (uint)i < (uint)size; }

// Loads COUNT elements of a row at given offsets; zero outside of the map. The loads have no branches, so
// that many are in flight: instead of an element outside, the nearest one inside is read.
#define LOAD_ROW(v, COUNT, map, y, height, row_stride, offsets, inside)                                    \
  {                                                                                                        \
    const bool row = is_inside(y, height);                                                                 \
    __global const T *line = (map) + (row ? (y) : 0) * (int)(row_stride);                                  \
    UNROLL for (int at_ = 0; at_ < COUNT; ++at_) {                                                         \
      const acc_t element = LOAD(TYPE, line, offsets[at_]);                                                \
      v[at_] = row && inside[at_] ? element : (acc_t)0;                                                    \
    }                                                                                                      \
  }

#if WINDOW
// The window of a strip's first position in the big tensor: the columns' offsets and whether they are inside,
// for LOAD_ROW; returns the first row.
INLINE int place_window(const Strip at, const ConvParams p, int column[WINDOW], bool inside[WINDOW]) {
  const int x = at.x * STRIDE - (int)p.padding[2];
  UNROLL for (int kx = 0; kx < WINDOW; ++kx) {
    inside[kx] = is_inside(x + kx, p.in[2]);
    column[kx] = inside[kx] ? (x + kx) * (int)p.big_strides[4] : 0;
  }
  return at.y * STRIDE - (int)p.padding[1];
}
#endif

// For forward and data: the initial values of a strip's sums, and storing them. Defines: HAS_BIAS.
INLINE void begin(acc_t sum[ROWS], __global const void *bias_base, ulong bias_offset, long at) {
#if HAS_BIAS
  const acc_t first = LOAD(TYPE, AT_CONST(TYPE, bias_base, bias_offset), at);
#else
  const acc_t first = 0;
#endif
  UNROLL for (int t = 0; t < ROWS; ++t) sum[t] = first;
}

INLINE void store(const acc_t sum[ROWS], __global T *out, long left, long row) {
  UNROLL for (int t = 0; t < ROWS; ++t)
    if (t < left) STORE(TYPE, out, t * row, TO(TYPE, sum[t]));
}
#endif
