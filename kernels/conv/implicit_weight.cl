// The gradient of a convolution's weights for GPUs as a matrix product without columns in memory: a
// work-group of BN items sums, over BK pixels of a row at a time, BM channels of the small map times BN
// (channel, tap) of the big one. So an item, which brings one of the latter, has one row of the map for a
// step, and each of its numbers a test of the column alone.
// Defines: TYPE; BM, TM; CHANNELS_LAST (1: in both maps the channels of a pixel are neighbours, and so are
// the n of a tap; vectors of four of them may be loaded); WHOLE_ROWS (else; 1: rows of the small map are
// multiples of BK, and vectors of four pixels may be loaded); PIECES (1: a group sums a piece of the pixels,
// in float).
#include "conv_implicit_weight_params.h"
#include "types.h"
#define TN 8
#include "register_tile.h"

#define BN 128
#define WX (BN / (LX * TN))
#define LA (BM * BK / 4 / BN)  // vectors of four numbers of the small map that an item loads
#define LB (BK / 4)            // of the big map
#define LOADED (CHANNELS_LAST ? 4 : 1)  // channels
#if PIECES
#define RESULT f32
#else
#define RESULT TYPE
#endif
typedef CAT(raw1_, TYPE) raw;
typedef CAT(raw4_, TYPE) raw4;

__attribute__((reqd_work_group_size(BN, 1, 1)))
__kernel void implicit_weight(__global void *target_base, ulong target_offset,
                              __global const void *small_base, ulong small_offset,
                              __global const void *big_base, ulong big_offset,
                              const ConvImplicitWeightParams p) {
  __local float As[2][BK][BM] __attribute__((aligned(16)));
  __local float Bs[2][BK][BN] __attribute__((aligned(16)));
  const int t = get_local_id(0), m0 = (int)get_group_id(1) * BM, n0 = (int)get_group_id(0) * BN;
  const ItemTile item = item_tile(t, WX, TM, TN);

  // What this item brings of a step: of the small map rows am and pixels ak of the tile, of the big one
  // columns bn and pixels bk.
#if CHANNELS_LAST
  const int am = t % (BM / 4) * 4, ak = t / (BM / 4), a_step = BN / (BM / 4);
  const int bn = t % (BN / 4) * 4, bk = t / (BN / 4), b_step = 4;
#else
  const int am = t % BM, ak = t / BM * 4, bn = t, bk = 0;
#endif
  const int m = min(m0 + am, (int)p.m - LOADED), n = min(n0 + bn, (int)p.n - LOADED);
  const int channel = p.taps_inner ? n / (int)p.taps : n % (int)p.channels;
  const int tap = p.taps_inner ? n % (int)p.taps : n / (int)p.channels;
  const int r = tap / (int)p.tap_columns, s = tap % (int)p.tap_columns;
  const int y0 = (int)p.first[0] + r * (int)p.tap_step[0], x0 = (int)p.first[1] + s * (int)p.tap_step[1];
  const int row_pixels = (int)p.row_pixels, x_step = (int)p.pixel_step[1];
  // Beyond the last pixel of a row the map goes on, and may be infinite: not to be multiplied by zero.
  const int x_end = clamp(x0 + (row_pixels - 1) * x_step + 1, 0, (int)p.columns);
  const int small_column = (int)p.small_column, big_column = (int)p.big_column;
  __global const raw *small = (__global const raw *)((__global const char *)small_base + small_offset) +
                              m * p.small_channel;
  __global const raw *big = (__global const raw *)((__global const char *)big_base + big_offset) +
                            channel * p.big_channel;

  // The pixels of the next step: column..column + BK - 1 of a row.
  const int map_rows = (int)p.map_rows, row_steps = (row_pixels + BK - 1) / BK;
  const int first = (int)get_group_id(2) * (int)p.steps;
  const int last = min(first + (int)p.steps, (int)p.images * map_rows * row_steps);
  int column = first % row_steps * BK, row = first / row_steps % map_rows;
  int image = first / row_steps / map_rows;
  __global const raw *from_small = small, *from_big = big;
  bool inside = false;
#define ROW                                                                                              \
  {                                                                                                      \
    const int y = y0 + row * (int)p.pixel_step[0];                                                       \
    inside = (uint)y < (uint)p.rows;                                                                     \
    from_small = small + image * p.small_image + row * p.small_row;                                      \
    from_big = big + image * p.big_image + (inside ? y * p.big_row : 0);                                 \
  }
#define X(pixel) (x0 + (column + (pixel)) * x_step)
#define IN_BIG(pixel) (inside && (uint)X(pixel) < (uint)x_end)
#define IN_SMALL(pixel) (column + (pixel) < row_pixels)
#if CHANNELS_LAST
  raw4 ra[LA], rb[LB];
#define LOAD_A                                                                                           \
  UNROLL for (int i = 0; i < LA; ++i) {                                                                  \
    const int pixel = ak + i * a_step;                                                                   \
    ra[i] = IN_SMALL(pixel) ? *(__global const raw4 *)(from_small + (column + pixel) * small_column)     \
                            : (raw4)(0);                                                                 \
  }
#define LOAD_B                                                                                           \
  UNROLL for (int i = 0; i < LB; ++i) {                                                                  \
    const int pixel = bk + i * b_step;                                                                   \
    rb[i] = IN_BIG(pixel) ? *(__global const raw4 *)(from_big + X(pixel) * big_column) : (raw4)(0);      \
  }
#define STORE_A(b)                                                                                       \
  UNROLL for (int i = 0; i < LA; ++i)                                                                    \
    *(__local float4 *)&As[b][ak + i * a_step][am] = CAT(unpack4_, TYPE)(ra[i]);
#define STORE_B(b)                                                                                       \
  UNROLL for (int i = 0; i < LB; ++i)                                                                    \
    *(__local float4 *)&Bs[b][bk + i * b_step][bn] = CAT(unpack4_, TYPE)(rb[i]);
#else
  raw rb[BK];
#define LOAD_B UNROLL for (int i = 0; i < BK; ++i) rb[i] = IN_BIG(i) ? from_big[X(i) * big_column] : (raw)0;
#define STORE_B(b) UNROLL for (int i = 0; i < BK; ++i) Bs[b][i][bn] = CAT(unpack1_, TYPE)(rb[i]);
#if WHOLE_ROWS
  raw4 ra[LA];
#define LOAD_A                                                                                           \
  UNROLL for (int i = 0; i < LA; ++i) ra[i] = *(__global const raw4 *)(from_small + column + ak + i * 4);
#define STORE_A(b)                                                                                       \
  UNROLL for (int i = 0; i < LA; ++i) {                                                                  \
    const float4 v = CAT(unpack4_, TYPE)(ra[i]);                                                         \
    As[b][ak + i * 4][am] = v.x, As[b][ak + i * 4 + 1][am] = v.y;                                        \
    As[b][ak + i * 4 + 2][am] = v.z, As[b][ak + i * 4 + 3][am] = v.w;                                    \
  }
#else
  raw ra[4 * LA];
#define LOAD_A                                                                                           \
  UNROLL for (int i = 0; i < 4 * LA; ++i)                                                                \
    ra[i] = IN_SMALL(ak + i) ? from_small[(column + ak + i) * small_column] : (raw)0;
#define STORE_A(b) UNROLL for (int i = 0; i < 4 * LA; ++i) As[b][ak + i][am] = CAT(unpack1_, TYPE)(ra[i]);
#endif
#endif
  // Loads a step's numbers, and goes on to the next one.
#define LOAD_STEP(step)                                                                                  \
  {                                                                                                      \
    LOAD_A                                                                                               \
    LOAD_B                                                                                               \
    column += BK;                                                                                        \
    if (column >= row_pixels) {                                                                          \
      column = 0;                                                                                        \
      if (++row == map_rows) row = 0, ++image;                                                           \
      ROW                                                                                                \
    }                                                                                                    \
  }
#define STORE_STEP(b) { STORE_A(b) STORE_B(b) }

  float acc[TM][TN];
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;
  if (first < last) ROW
#define A_LINE(b, k) As[b][k]
#define B_LINE(b, k) Bs[b][k]
  ADD_STEPS(int, first, last, LOAD_STEP, STORE_STEP, A_LINE, B_LINE, item, acc)

  __global STYPE(RESULT) *target = AT(RESULT, target_base, target_offset) + get_group_id(2) * p.piece;
  UNROLL for (int i = 0; i < TM; ++i) {
    const long to_m = m0 + item.row + row_offset(i);
    UNROLL for (int j = 0; j < TN; ++j) {
      const long to_n = n0 + item.column + column_offset(j);
      if (to_m < p.m && to_n < p.n) STORE(RESULT, target, to_m * p.target_m + to_n * p.target_n, acc[i][j]);
    }
  }
}
