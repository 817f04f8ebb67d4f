// What the direct convolutions for GPUs share. A work-item has a strip of ROWS positions of one column, so
// that adjacent work-items read adjacent columns, and a row that several windows contain is read once.
// Defines: TYPE, FLOATING, WIDE (accumulator.h); WINDOW (3, 5, 7: its height and width, not dilated, with
// STRIDE in both directions; 0: any geometry); ROWS; CHANNELS_LAST (1: channels are contiguous, and adjacent
// work-items take adjacent channels); PAIRED (1: two adjacent channels each; of 16-bit types, with a WINDOW);
// COLUMNS (2: a strip of each of two adjacent columns, the first of which is even; with a WINDOW and STRIDE
// 1, not of float64) and then ODD (the padding modulo 2).
#ifndef OCLTENSOR_DEPTHWISE_H
#define OCLTENSOR_DEPTHWISE_H
#include "accumulator.h"
#include "conv_params.h"
#define RESULT TYPE
#define SELF_TYPE TYPE
#include "epilogue.h"
#define T STYPE(TYPE)

// What a work-item has at a position: an element, or those of two channels or of two columns. `step`: from
// one channel to the next, where they need not be contiguous.
#if PAIRED || COLUMNS == 2
#define VEC 2
#include "element_vectors.h"
typedef float2 item_t;
INLINE item_t load_item(__global const T *p, long i) {
  float v[2];
  LOADV(TYPE, p, i, v);
  return (item_t)(v[0], v[1]);
}
INLINE void store_item(__global T *p, long i, item_t item) {
  const float v[2] = {item.x, item.y};
  STOREV(TYPE, p, i, v);
}
#if PAIRED
#define LOAD_APART(p, i, step) ((item_t)(LOAD(TYPE, p, i), LOAD(TYPE, p, (i) + (step))))
#else
#define LOAD_APART(p, i, step) ((item_t)(LOAD(TYPE, p, i)))
#endif
#else
typedef acc_t item_t;
#define load_item(p, i) LOAD(TYPE, p, i)
#define store_item(p, i, item) STORE(TYPE, p, i, TO(TYPE, item))
#define LOAD_APART(p, i, step) LOAD(TYPE, p, i)
#endif

typedef struct {
  int x, y, channel, n;  // y: the first row; the first channel
} Strip;

// Strip i of a map.
INLINE Strip strip_of(uint i, uint width, uint height, uint channels) {
  const uint blocks = (height + ROWS - 1) / ROWS;
  width /= COLUMNS;
  Strip s;
#if CHANNELS_LAST
  channels /= 1 + PAIRED;
  const uint column = i / channels, block = column / width, n = block / blocks;
  s.channel = (i - column * channels) * (1 + PAIRED);
  s.x = column - block * width;
  s.y = (block - n * blocks) * ROWS;
  s.n = n;
#else
  const uint block = i / width, plane = block / blocks;
  s.x = (i - block * width) * COLUMNS;
  s.y = (block - plane * blocks) * ROWS;
  s.n = plane / channels;
  s.channel = plane - s.n * channels;
#endif
  return s;
}

INLINE bool is_inside(int i, long size) { return (uint)i < (uint)size; }

// Loads COUNT items of a row at given offsets; zero outside of the map. The loads have no branches, so that
// many are in flight: instead of an element outside, the nearest one inside is read. The items of two columns
// overlap: COUNT + 1 elements, of which two are one load that is inside or outside as a whole.
#define BEGIN_ROW(map, y, height, row_stride) \
  const bool row = is_inside(y, height);      \
  __global const T *line = (map) + (row ? (y) : 0) * (int)(row_stride);
#if COLUMNS == 2
#define LOAD_ROW(v, COUNT, map, y, height, row_stride, offsets, inside)          \
  {                                                                              \
    BEGIN_ROW(map, y, height, row_stride)                                        \
    float element[(COUNT) + 1];                                                  \
    if (ODD) element[0] = LOAD(TYPE, line, offsets[0]);                          \
    if (ODD) element[COUNT] = LOAD(TYPE, line, offsets[COUNT]);                  \
    UNROLL for (int at_ = ODD; at_ < (COUNT); at_ += 2) {                        \
      const item_t both = load_item(line, offsets[at_]);                         \
      element[at_] = both.s0;                                                    \
      element[at_ + 1] = both.s1;                                                \
    }                                                                            \
    UNROLL for (int at_ = 0; at_ <= (COUNT); ++at_)                              \
      element[at_] = row && inside[at_] ? element[at_] : 0.0f;                   \
    UNROLL for (int at_ = 0; at_ < (COUNT); ++at_)                               \
      v[at_] = (item_t)(element[at_], element[at_ + 1]);                         \
  }
#else
#define LOAD_ROW(v, COUNT, map, y, height, row_stride, offsets, inside)          \
  {                                                                              \
    BEGIN_ROW(map, y, height, row_stride)                                        \
    UNROLL for (int at_ = 0; at_ < COUNT; ++at_) {                               \
      const item_t element = load_item(line, offsets[at_]);                      \
      v[at_] = row && inside[at_] ? element : (item_t)(0);                       \
    }                                                                            \
  }
#endif

#if WINDOW
#define PLACES (WINDOW + COLUMNS - 1)  // columns of the map that a strip's window reads
// The columns from x on of a map: their offsets, and whether they are inside, for LOAD_ROW.
INLINE void place_columns(int x, long width, long step, int column[PLACES], bool inside[PLACES]) {
  UNROLL for (int kx = 0; kx < PLACES; ++kx) {
    inside[kx] = is_inside(x + kx, width);
    column[kx] = inside[kx] ? (x + kx) * (int)step : 0;
  }
}
// The window of a strip's first position in the big tensor; returns the first row.
INLINE int place_window(const Strip at, const ConvParams p, int column[PLACES], bool inside[PLACES]) {
  place_columns(at.x * STRIDE - (int)p.padding[2], p.in[2], p.big_strides[4], column, inside);
  return at.y * STRIDE - (int)p.padding[1];
}
#endif

// For forward and data: what the end adds to a strip's sums, to be loaded before they are summed, and storing
// the results.
INLINE item_t self_of_strip(const Strip at, const Epilogue end) {
#if PAIRED || COLUMNS == 2
  return (item_t)(self_at(at.channel, 0, end), self_at(at.channel + PAIRED, 0, end));
#else
  return self_at(at.channel, 0, end);
#endif
}
END_OF_VECTORS(item_t)
INLINE void store_strip(const item_t sum[ROWS], item_t self, const Epilogue end, __global T *out, long left,
                        long row) {
  UNROLL for (int t = 0; t < ROWS; ++t)
    if (t < left) store_item(out, t * row, ended_item_t(sum[t], self, end));
}
#endif
