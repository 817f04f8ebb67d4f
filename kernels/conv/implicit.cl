// Convolution for GPUs as a matrix product without columns in memory: a work-group computes BM channels of BN
// pixels, an item TM channels of 8 pixels, as matmul/sgemm.cl does. The terms are ordered by tap of the
// window, then by channel; a step takes BK channels of one tap, so that a work-item, which brings numbers of
// one pixel, has one test and one pointer for them. Weights are packed beforehand, [tap][padded channel]
// [padded m]. Of few channels a step takes BK columns of the window instead (ALONG_WINDOW): then its rows and
// the channels are what is called taps here, and its columns what is called channels.
// Defines: TYPE; BM, TM (64 and 8, 128 and 8, 128 and 16); RAGGED (1: the source's channels are no multiple
// of BK); ALONG_WINDOW; SOURCE_LAST (1: the channels of a pixel are neighbours, and vectors of four of them
// may be loaded); TARGET (0: any strides, 1: four pixels may be stored at once, 2: four channels); HAS_BIAS;
// PIECES (1: a group sums a piece of the terms, in float; else the groups' last index is the phase).
#include "conv_implicit_params.h"
#include "types.h"
#define VEC 4
#include "element_vectors.h"
#define TN 8
#include "register_tile.h"

#define BN 128
#define ITEMS ((BM / TM) * (BN / TN))
#define WX (BN / (LX * TN))
#define LA (BM * BK / 4 / ITEMS)  // vectors of four weights that an item loads
#define A_STEP (ITEMS / (BM / 4))
#define LB (BK * BN / ITEMS)  // channels of its pixel
#if PIECES
#define RESULT f32
#else
#define RESULT TYPE
#endif
typedef CAT(raw1_, TYPE) raw;
typedef CAT(raw4_, TYPE) raw4;

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void implicit(__global void *target_base, ulong target_offset, __global const void *source_base,
                       ulong source_offset, __global const void *weight_base, ulong weight_offset,
                       __global const void *bias_base, ulong bias_offset, const ConvImplicitParams p) {
  __local float As[2][BK][BM] __attribute__((aligned(16)));
  __local float Bs[2][BK][BN] __attribute__((aligned(16)));
  const int t = get_local_id(0), m0 = (int)get_group_id(1) * BM;
  // Chosen without an index, for which many compilers copy all of `p` to each work-item's memory.
  ConvPhase phase = p.phases[0];
#if !PIECES
  UNROLL for (int k = 1; k < CONV_PHASES; ++k) if (get_group_id(2) == k) phase = p.phases[k];
#endif
  const int n0 = (int)get_group_id(0) * BN, n_end = (int)phase.pixels;
  const int map_pixels = (int)phase.map_pixels, row_pixels = (int)phase.row_pixels;
  const ItemTile item = item_tile(t, WX, TM, TN);

  // The pixel of which this item brings channels own .. own + LB - 1 of each step, and the tap and channel of
  // the next step.
  const int bn = t % BN, own = t / BN * LB;
  const int pixel = min(n0 + bn, n_end - 1), image = pixel / map_pixels, in_map = pixel - image * map_pixels;
  const int y0 = in_map / row_pixels * (int)p.pixel_step[0] + (int)phase.first[0];
  const int x0 = in_map % row_pixels * (int)p.pixel_step[1] + (int)phase.first[1];
  __global const raw *source = (__global const raw *)((__global const char *)source_base + source_offset) +
                               image * p.source_image;
  const int channels = (int)p.padded_channels, blocks = channels / BK;
  const int tap_columns = max((int)phase.taps[1], 1);
  // Another phase may have more pixels: this group has nothing to do then.
  const int all = n0 < n_end ? (int)(phase.taps[0] * phase.taps[1]) * blocks : 0;
  const int first = PIECES ? (int)get_group_id(2) * (int)p.steps : 0;
  const int last = PIECES ? min(first + (int)p.steps, all) : all;
  int r = first / blocks / tap_columns, s = first / blocks % tap_columns, c = first % blocks * BK;
  const int am = t % (BM / 4) * 4, ak = t / (BM / 4);
  __global const raw *weight = (__global const raw *)((__global const char *)weight_base + weight_offset) +
                               m0 + am + ak * p.padded_m;
  // Pointers: with offsets NVIDIA takes 2 % longer. Intel's compiler (IGC 1.0.12504) does not survive
  // them, but its devices have too few registers for these tiles, and are not given this kernel.
  __global const raw *from = source, *packed = weight;
  bool inside = false;
#if ALONG_WINDOW
  const int tap_step = (int)p.tap_step[1];
  const long term_step = tap_step * p.source_column;
#define PLACE                                                                                            \
  const int y = y0 + r * (int)p.tap_step[0];                                                             \
  inside = (uint)y < (uint)p.rows;                                                                       \
  from = source + s * p.source_channel + (inside ? (long)y * p.source_row : 0) + x0 * p.source_column;
#else
  const long term_step = p.source_channel;
#define PLACE                                                                                            \
  const int y = y0 + r * (int)p.tap_step[0], x = x0 + s * (int)p.tap_step[1];                            \
  inside = (uint)y < (uint)p.rows && (uint)x < (uint)p.columns;                                          \
  from = source + (inside ? (long)y * p.source_row + (long)x * p.source_column : 0);
#endif
#define TAP                                                                                              \
  {                                                                                                      \
    PLACE                                                                                                \
    from += (c + own) * term_step;                                                                       \
    const long tap = phase.weight_first + r * p.weight_step[0] + s * p.weight_step[1];                       \
    packed = weight + (tap * channels + c) * p.padded_m;                                                 \
  }
  raw4 ra[LA];
#if SOURCE_LAST
  raw4 rb[LB / 4];
#define LOAD_B \
  UNROLL for (int i = 0; i < LB / 4; ++i) rb[i] = inside ? ((__global const raw4 *)from)[i] : (raw4)(0);
#define STORE_B(b)                                                                  \
  UNROLL for (int i = 0; i < LB / 4; ++i) {                                         \
    const float4 v = CAT(unpack4_, TYPE)(rb[i]);                                    \
    Bs[b][own + i * 4][bn] = v.x, Bs[b][own + i * 4 + 1][bn] = v.y;                 \
    Bs[b][own + i * 4 + 2][bn] = v.z, Bs[b][own + i * 4 + 3][bn] = v.w;             \
  }
#else
  raw rb[LB];
#if ALONG_WINDOW
#define EXISTS(i) \
  (inside && c + own + i < (int)p.channels && (uint)(x0 + (c + own + i) * tap_step) < (uint)p.columns)
#elif RAGGED
#define EXISTS(i) (inside && c + own + i < (int)p.channels)
#else
#define EXISTS(i) inside
#endif
#define LOAD_B UNROLL for (int i = 0; i < LB; ++i) rb[i] = EXISTS(i) ? from[i * term_step] : (raw)0;
#define STORE_B(b) UNROLL for (int i = 0; i < LB; ++i) Bs[b][own + i][bn] = CAT(unpack1_, TYPE)(rb[i]);
#endif
  // Loads a step's numbers, and goes on to the next one.
#define LOAD_STEP(step)                                                                                  \
  {                                                                                                      \
    UNROLL for (int i = 0; i < LA; ++i) ra[i] = *(__global const raw4 *)(packed + i * A_STEP * p.padded_m);\
    LOAD_B                                                                                               \
    c += BK;                                                                                             \
    from += BK * term_step;                                                                              \
    packed += BK * p.padded_m;                                                                           \
    if (c == channels) {                                                                                 \
      c = 0;                                                                                             \
      if (++s == tap_columns) s = 0, ++r;                                                                \
      TAP                                                                                                \
    }                                                                                                    \
  }
#define STORE_STEP(b)                                                                                    \
  {                                                                                                      \
    UNROLL for (int i = 0; i < LA; ++i)                                                                  \
      *(__local float4 *)&As[b][ak + i * A_STEP][am] = CAT(unpack4_, TYPE)(ra[i]);                       \
    STORE_B(b)                                                                                           \
  }

  float acc[TM][TN];
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;
  if (first < last) TAP
#define A_LINE(b, k) As[b][k]
#define B_LINE(b, k) Bs[b][k]
  ADD_STEPS(int, first, last, LOAD_STEP, STORE_STEP, A_LINE, B_LINE, item, acc)

#if HAS_BIAS
  UNROLL for (int i = 0; i < TM; ++i) {
    const long m = min((long)m0 + item.row + row_offset(i), (long)p.m - 1);
    const float bias = LOAD(TYPE, AT_CONST(TYPE, bias_base, bias_offset), m * p.bias_stride);
    UNROLL for (int j = 0; j < TN; ++j) acc[i][j] += bias;
  }
#endif
  __global STYPE(RESULT) *target = AT(RESULT, target_base, target_offset) +
                                   (PIECES ? get_group_id(2) * p.piece : phase.target);
  UNROLL for (int j = 0; j < TN; j += 4) {
    const int n = n0 + item.column + column_offset(j);
#if TARGET == 1
    if (n >= n_end) continue;
    const int at_image = n / map_pixels;
    __global STYPE(RESULT) *to = target + at_image * p.target_image + (n - at_image * map_pixels);
    UNROLL for (int i = 0; i < TM; ++i) {
      const long m = m0 + item.row + row_offset(i);
      if (m < p.m) STOREV(RESULT, to + m * p.target_channel, 0, &acc[i][j]);
    }
#else
    UNROLL for (int e = 0; e < 4; ++e) {
      if (n + e >= n_end) continue;
      const int at_image = (n + e) / map_pixels, at = n + e - at_image * map_pixels;
      __global STYPE(RESULT) *to = target + at_image * p.target_image + at / row_pixels * p.target_row +
                                   at % row_pixels * p.target_column;
      UNROLL for (int i = 0; i < TM; i += 4) {
        const long m = m0 + item.row + row_offset(i);
#if TARGET == 2
        const float four[4] = {acc[i][j + e], acc[i + 1][j + e], acc[i + 2][j + e], acc[i + 3][j + e]};
        if (m < p.m) STOREV(RESULT, to + m, 0, four);
#else
        UNROLL for (int u = 0; u < 4; ++u)
          if (m + u < p.m) STORE(RESULT, to, (m + u) * p.target_channel, acc[i + u][j + e]);
#endif
      }
    }
#endif
  }
}
