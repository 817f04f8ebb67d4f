// The gradient of a convolution's weights for GPUs as a matrix product without columns in memory: a
// work-group of BN items sums, over BK pixels of a row at a time, BM channels of the small map times BN
// (channel, tap) of the big one. So an item, which brings one of the latter, has one row of the map for a
// step, and each of its numbers a test of the column alone.
// Defines: TYPE; BM, TM; CHANNELS_LAST (1: in both maps the channels of a pixel are neighbours, and so are
// the n of a tap; vectors of four of them may be loaded); WHOLE_ROWS (else; 1: rows of the small map are
// multiples of BK, and vectors of four pixels may be loaded); PIECES (1: a group sums a piece of the pixels,
// in float).
#include "conv_implicit_weight_params.h"
#include "implicit.h"

#define LA (BM * BK / 4 / BN)  // vectors of four numbers of the small map that an item loads
#define LB (BK / 4)            // of the big map
#define LOADED (CHANNELS_LAST ? 4 : 1)  // channels

// What a work-item brings to local memory: of each step, which is BK pixels of a row, LA vectors of the small
// map, and of the big one LB of them or all pixels of one (channel, tap).
typedef struct {
  int m, small_pixel;               // the first of its numbers of the small map, in the tile and the step
  int n, big_pixel;                 // and of the big map
  int y0, x0, x_end;                // in the big map, where pixel 0 meets the item's tap; the row's end
  __global const raw *small, *big;  // the item's channels
  int column, row, image;           // the next step's first pixel
  __global const raw *from_small, *from_big;  // its row
} Loader;

// A step's numbers on their way, as they are in memory.
typedef struct {
#if CHANNELS_LAST
  raw4 small[LA], big[LB];
#else
#if WHOLE_ROWS
  raw4 small[LA];
#else
  raw small[4 * LA];
#endif
  raw big[BK];
#endif
} Step;

// Turns to the row of the next step. Returns whether there is one in the big map: no member of the loader, as
// there AMD's compiler takes a vector register for it.
INLINE bool go_to_row(Loader *l, const ConvImplicitWeightParams p) {
  const int y = l->y0 + l->row * (int)p.pixel_step[0];
  const bool inside = (uint)y < (uint)p.rows;
  l->from_small = l->small + l->image * p.small_image + l->row * p.small_row;
  l->from_big = l->big + l->image * p.big_image + (inside ? y * p.big_row : 0);
  return inside;
}

// The loader of a work-group's tile, which begins at m0 and n0; its next step is `step`.
INLINE Loader loader_of(int m0, int n0, int step, __global const raw *small, __global const raw *big,
                        const ConvImplicitWeightParams p) {
  const int t = get_local_id(0);
  Loader l;
#if CHANNELS_LAST
  l.m = t % (BM / 4) * 4, l.small_pixel = t / (BM / 4);
  l.n = t % (BN / 4) * 4, l.big_pixel = t / (BN / 4);
#else
  l.m = t % BM, l.small_pixel = t / BM * 4;
  l.n = t, l.big_pixel = 0;
#endif
  const int m = min(m0 + l.m, (int)p.m - LOADED), n = min(n0 + l.n, (int)p.n - LOADED);
  const int channel = p.taps_inner ? n / (int)p.taps : n % (int)p.channels;
  const int tap = p.taps_inner ? n % (int)p.taps : n / (int)p.channels;
  const int r = tap / (int)p.tap_columns, s = tap % (int)p.tap_columns;
  l.y0 = (int)p.first[0] + r * (int)p.tap_step[0];
  l.x0 = (int)p.first[1] + s * (int)p.tap_step[1];
  // Beyond the last pixel of a row the map goes on, and may be infinite: not to be multiplied by zero.
  l.x_end = clamp(l.x0 + ((int)p.row_pixels - 1) * (int)p.pixel_step[1] + 1, 0, (int)p.columns);
  l.small = small + m * p.small_channel;
  l.big = big + channel * p.big_channel;
  const int row_steps = ((int)p.row_pixels + BK - 1) / BK;
  l.column = step % row_steps * BK;
  l.row = step / row_steps % (int)p.map_rows;
  l.image = step / row_steps / (int)p.map_rows;
  l.from_small = l.small;
  l.from_big = l.big;
  return l;
}

// Of a pixel of the step: whether it exists in the small map, its column in the big one, and whether that
// exists; `inside`: the step's row is in the big map.
INLINE bool in_small(const Loader *l, int pixel, const ConvImplicitWeightParams p) {
  return l->column + pixel < (int)p.row_pixels;
}
INLINE int big_column(const Loader *l, int pixel, const ConvImplicitWeightParams p) {
  return l->x0 + (l->column + pixel) * (int)p.pixel_step[1];
}

INLINE bool in_big(const Loader *l, bool inside, int pixel, const ConvImplicitWeightParams p) {
  return inside && (uint)big_column(l, pixel, p) < (uint)l->x_end;
}

// Loads the next step's numbers.
INLINE void load_step(const Loader *l, bool inside, Step *step, const ConvImplicitWeightParams p) {
#if CHANNELS_LAST
  UNROLL for (int i = 0; i < LA; ++i) {
    const int pixel = l->small_pixel + i * (BN / (BM / 4));
    step->small[i] =
        in_small(l, pixel, p)
            ? *(__global const raw4 *)(l->from_small + (l->column + pixel) * (int)p.small_column)
            : (raw4)(0);
  }
#elif WHOLE_ROWS
  UNROLL for (int i = 0; i < LA; ++i)
    step->small[i] = *(__global const raw4 *)(l->from_small + l->column + l->small_pixel + i * 4);
#else
  UNROLL for (int i = 0; i < 4 * LA; ++i) {
    const int pixel = l->small_pixel + i;
    step->small[i] =
        in_small(l, pixel, p) ? l->from_small[(l->column + pixel) * (int)p.small_column] : (raw)0;
  }
#endif
#if CHANNELS_LAST
  UNROLL for (int i = 0; i < LB; ++i) {
    const int pixel = l->big_pixel + i * 4;
    step->big[i] =
        in_big(l, inside, pixel, p)
            ? *(__global const raw4 *)(l->from_big + big_column(l, pixel, p) * (int)p.big_column)
            : (raw4)(0);
  }
#else
  UNROLL for (int i = 0; i < BK; ++i)
    step->big[i] =
        in_big(l, inside, i, p) ? l->from_big[big_column(l, i, p) * (int)p.big_column] : (raw)0;
#endif
}

// Goes on to the step behind it. Returns whether that one's row is in the big map.
INLINE bool next_step(Loader *l, bool inside, const ConvImplicitWeightParams p) {
  l->column += BK;
  if (l->column < (int)p.row_pixels) return inside;
  l->column = 0;
  if (++l->row == (int)p.map_rows) l->row = 0, ++l->image;
  return go_to_row(l, p);
}

// Stores a step's numbers in a buffer of local memory.
INLINE void store_step(const Loader *l, const Step *step, __local float A[BK][BM], __local float B[BK][BN]) {
#if CHANNELS_LAST
  UNROLL for (int i = 0; i < LA; ++i)
    *(__local float4 *)&A[l->small_pixel + i * (BN / (BM / 4))][l->m] = CAT(unpack4_, TYPE)(step->small[i]);
  UNROLL for (int i = 0; i < LB; ++i)
    *(__local float4 *)&B[l->big_pixel + i * 4][l->n] = CAT(unpack4_, TYPE)(step->big[i]);
#else
#if WHOLE_ROWS
  UNROLL for (int i = 0; i < LA; ++i) {
    const float4 v = CAT(unpack4_, TYPE)(step->small[i]);
    const int k = l->small_pixel + i * 4;
    A[k][l->m] = v.x, A[k + 1][l->m] = v.y, A[k + 2][l->m] = v.z, A[k + 3][l->m] = v.w;
  }
#else
  UNROLL for (int i = 0; i < 4 * LA; ++i) A[l->small_pixel + i][l->m] = CAT(unpack1_, TYPE)(step->small[i]);
#endif
  UNROLL for (int i = 0; i < BK; ++i) B[i][l->n] = CAT(unpack1_, TYPE)(step->big[i]);
#endif
}

// Stores the results that exist, of the tile that begins at m0 and n0.
INLINE void store_results(float acc[TM][TN], int m0, int n0, ItemTile at, __global STYPE(RESULT) *target,
                          const ConvImplicitWeightParams p) {
  UNROLL for (int i = 0; i < TM; ++i) {
    const long m = m0 + at.row + row_offset(i);
    UNROLL for (int j = 0; j < TN; ++j) {
      const long n = n0 + at.column + column_offset(j);
      if (m < p.m && n < p.n) STORE(RESULT, target, m * p.target_m + n * p.target_n, acc[i][j]);
    }
  }
}

__attribute__((reqd_work_group_size(BN, 1, 1)))
__kernel void implicit_weight(__global void *target_base, ulong target_offset,
                              __global const void *small_base, ulong small_offset,
                              __global const void *big_base, ulong big_offset,
                              const ConvImplicitWeightParams p) {
  __local float As[2][BK][BM] __attribute__((aligned(16)));
  __local float Bs[2][BK][BN] __attribute__((aligned(16)));
  const int m0 = (int)get_group_id(1) * BM, n0 = (int)get_group_id(0) * BN;
  const int row_steps = ((int)p.row_pixels + BK - 1) / BK;
  const int first = (int)get_group_id(2) * (int)p.steps;
  const int last = min(first + (int)p.steps, (int)p.images * (int)p.map_rows * row_steps);
  const ItemTile at = item_tile(get_local_id(0), WX, TM, TN);
  Loader loader =
      loader_of(m0, n0, first, AT_RAW(small_base, small_offset), AT_RAW(big_base, big_offset), p);
  Step step;
  float acc[TM][TN];
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;
  bool inside = false;
  if (first < last) inside = go_to_row(&loader, p);
#define LOAD_STEP(n)                           \
  {                                            \
    load_step(&loader, inside, &step, p);      \
    inside = next_step(&loader, inside, p);    \
  }
#define STORE_STEP(b) store_step(&loader, &step, As[b], Bs[b])
#define A_LINE(b, k) As[b][k]
#define B_LINE(b, k) Bs[b][k]
  ADD_STEPS(int, first, last, LOAD_STEP, STORE_STEP, A_LINE, B_LINE, at, acc)
  store_results(acc, m0, n0, at, AT(RESULT, target_base, target_offset) + get_group_id(2) * p.piece, p);
}
