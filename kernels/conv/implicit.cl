// Convolution for GPUs as a matrix product without columns in memory: a work-group computes BM channels of BN
// pixels, an item TM channels of 8 pixels, as matmul/sgemm.cl does. The terms are ordered by tap of the
// window, then by channel; a step takes BK channels of one tap, so that a work-item, which brings numbers of
// one pixel, has one test and one pointer for them. Weights are packed beforehand, [tap][padded channel]
// [padded m]. Of few channels a step takes BK columns of the window instead (ALONG_WINDOW): then its rows and
// the channels are what is called taps here, and its columns what is called channels.
// Defines: TYPE; BM, TM (64 and 8, 128 and 8, 128 and 16); RAGGED (1: the source's channels are no multiple
// of BK); ALONG_WINDOW; SOURCE_LAST (1: the channels of a pixel are neighbours, and vectors of four of them
// may be loaded); TARGET (0: any strides, 1: four pixels may be stored at once, 2: four channels); ADD_SELF
// (1: there is a bias); PIECES (1: a group sums a piece of the terms, in float; else the groups' last index
// is the phase).
#include "conv_implicit_params.h"
#define SELF_TYPE TYPE
#include "epilogue.h"
#define VEC 4
#include "element_vectors.h"
#include "implicit.h"

#define ITEMS ((BM / TM) * (BN / TN))
#define LA (BM * BK / 4 / ITEMS)  // vectors of four weights that an item loads
#define A_STEP (ITEMS / (BM / 4))
#define LB (BK * BN / ITEMS)  // channels of its pixel

// What a work-item brings to local memory: of each step, weights of four channels of the target in LA lines,
// and of one pixel's source the channels own .. own + LB - 1.
typedef struct {
  int pixel, own;                     // of the tile
  int m, line;                        // the first of the channels of the target, and of the lines
  int y0, x0;                         // where the pixel meets the window's first tap
  __global const raw *image, *first;  // the pixel's image; the weights of tap 0
  // The next step: its tap and channel.
  int r, s, c;
  // Its numbers. Pointers: with offsets NVIDIA takes 2 % longer. Intel's compiler (IGC 1.0.12504) does not
  // survive them, but its devices have too few registers for these tiles, and are not given this kernel.
  __global const raw *from, *packed;
} Loader;

// A step's numbers on their way, as they are in memory.
typedef struct {
  raw4 weights[LA];
#if SOURCE_LAST
  raw4 source[LB / 4];
#else
  raw source[LB];
#endif
} Step;

// Elements of the source between two numbers of a step.
INLINE long term_step(const ConvImplicitParams p) {
  return ALONG_WINDOW ? (int)p.tap_step[1] * p.source_column : p.source_channel;
}

// The loader of a work-group's tile, which begins at pixel n0 and channel m0; its next step is `step`.
INLINE Loader loader_of(int n0, int m0, int step, __global const raw *source, __global const raw *weight,
                        const ConvPhase phase, const ConvImplicitParams p) {
  const int t = get_local_id(0);
  Loader l;
  l.pixel = t % BN;
  l.own = t / BN * LB;
  l.m = t % (BM / 4) * 4;
  l.line = t / (BM / 4);
  const int pixel = min(n0 + l.pixel, (int)phase.pixels - 1), image = pixel / (int)phase.map_pixels;
  const int in_map = pixel - image * (int)phase.map_pixels;
  l.y0 = in_map / (int)phase.row_pixels * (int)p.pixel_step[0] + (int)phase.first[0];
  l.x0 = in_map % (int)phase.row_pixels * (int)p.pixel_step[1] + (int)phase.first[1];
  l.image = source + image * p.source_image;
  l.first = weight + m0 + l.m + l.line * p.padded_m;
  const int blocks = (int)p.padded_channels / BK, tap_columns = max((int)phase.taps[1], 1);
  l.r = step / blocks / tap_columns;
  l.s = step / blocks % tap_columns;
  l.c = step % blocks * BK;
  l.from = l.image;
  l.packed = l.first;
  return l;
}

// Turns to the numbers of the next step, where its tap is another one. Returns whether the tap (ALONG_WINDOW:
// its row) is in the map: no member of the loader, as there AMD's compiler takes a vector register for it.
INLINE bool go_to_tap(Loader *l, const ConvPhase phase, const ConvImplicitParams p) {
  const int y = l->y0 + l->r * (int)p.tap_step[0];
#if ALONG_WINDOW
  const bool inside = (uint)y < (uint)p.rows;
  l->from = l->image + l->s * p.source_channel + (inside ? (long)y * p.source_row : 0) +
            l->x0 * p.source_column;
#else
  const int x = l->x0 + l->s * (int)p.tap_step[1];
  const bool inside = (uint)y < (uint)p.rows && (uint)x < (uint)p.columns;
  l->from = l->image + (inside ? (long)y * p.source_row + (long)x * p.source_column : 0);
#endif
  l->from += (l->c + l->own) * term_step(p);
  const long tap = phase.weight_first + l->r * p.weight_step[0] + l->s * p.weight_step[1];
  l->packed = l->first + (tap * (int)p.padded_channels + l->c) * p.padded_m;
  return inside;
}

// Whether channel own + i of the step, whose tap is `inside`, exists in the source.
INLINE bool exists(const Loader *l, bool inside, int i, const ConvImplicitParams p) {
#if ALONG_WINDOW
  return inside && l->c + l->own + i < (int)p.channels &&
         (uint)(l->x0 + (l->c + l->own + i) * (int)p.tap_step[1]) < (uint)p.columns;
#elif RAGGED
  return inside && l->c + l->own + i < (int)p.channels;
#else
  return inside;
#endif
}

// Loads the next step's numbers; its tap is `inside`.
INLINE void load_step(const Loader *l, bool inside, Step *step, const ConvImplicitParams p) {
  UNROLL for (int i = 0; i < LA; ++i)
    step->weights[i] = *(__global const raw4 *)(l->packed + i * A_STEP * p.padded_m);
#if SOURCE_LAST
  UNROLL for (int i = 0; i < LB / 4; ++i)
    step->source[i] = inside ? ((__global const raw4 *)l->from)[i] : (raw4)(0);
#else
  UNROLL for (int i = 0; i < LB; ++i)
    step->source[i] = exists(l, inside, i, p) ? l->from[i * term_step(p)] : (raw)0;
#endif
}

// Goes on to the step behind it. Returns whether that one's tap is in the map.
INLINE bool next_step(Loader *l, bool inside, const ConvPhase phase, const ConvImplicitParams p) {
  l->c += BK;
  l->from += BK * term_step(p);
  l->packed += BK * p.padded_m;
  if (l->c < (int)p.padded_channels) return inside;
  l->c = 0;
  if (++l->s == max((int)phase.taps[1], 1)) l->s = 0, ++l->r;
  return go_to_tap(l, phase, p);
}

// Stores a step's numbers in a buffer of local memory.
INLINE void store_step(const Loader *l, const Step *step, __local float A[BK][BM], __local float B[BK][BN]) {
  UNROLL for (int i = 0; i < LA; ++i)
    *(__local float4 *)&A[l->line + i * A_STEP][l->m] = CAT(unpack4_, TYPE)(step->weights[i]);
#if SOURCE_LAST
  UNROLL for (int i = 0; i < LB / 4; ++i) {
    const float4 v = CAT(unpack4_, TYPE)(step->source[i]);
    B[l->own + i * 4][l->pixel] = v.x, B[l->own + i * 4 + 1][l->pixel] = v.y;
    B[l->own + i * 4 + 2][l->pixel] = v.z, B[l->own + i * 4 + 3][l->pixel] = v.w;
  }
#else
  UNROLL for (int i = 0; i < LB; ++i) B[l->own + i][l->pixel] = CAT(unpack1_, TYPE)(step->source[i]);
#endif
}

INLINE void end_results(float acc[TM][TN], int m0, ItemTile at, const Epilogue end,
                        const ConvImplicitParams p) {
  UNROLL for (int i = 0; i < TM; ++i) {
    const long m = min((long)m0 + at.row + row_offset(i), (long)p.m - 1);
    UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = ended(acc[i][j], m, 0, end);
  }
}

// Stores the results that exist, of the tile that begins at channel m0 and pixel n0.
INLINE void store_results(float acc[TM][TN], int m0, int n0, ItemTile at, __global STYPE(RESULT) *target,
                          const ConvPhase phase, const ConvImplicitParams p) {
  const int n_end = (int)phase.pixels, map_pixels = (int)phase.map_pixels, row_pixels = (int)phase.row_pixels;
  UNROLL for (int j = 0; j < TN; j += 4) {
    const int n = n0 + at.column + column_offset(j);
#if TARGET == 1
    if (n >= n_end) continue;
    const int image = n / map_pixels;
    __global STYPE(RESULT) *to = target + image * p.target_image + (n - image * map_pixels);
    UNROLL for (int i = 0; i < TM; ++i) {
      const long m = m0 + at.row + row_offset(i);
      if (m < p.m) STOREV(RESULT, to + m * p.target_channel, 0, &acc[i][j]);
    }
#else
    UNROLL for (int e = 0; e < 4; ++e) {
      if (n + e >= n_end) continue;
      const int image = (n + e) / map_pixels, in_map = n + e - image * map_pixels;
      __global STYPE(RESULT) *to = target + image * p.target_image + in_map / row_pixels * p.target_row +
                                   in_map % row_pixels * p.target_column;
      UNROLL for (int i = 0; i < TM; i += 4) {
        const long m = m0 + at.row + row_offset(i);
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

// Of numbers, not by an index or a branch, for which compilers copy all of the kernel's parameters to each
// work-item's memory.
INLINE ConvPhase chosen(bool is, const ConvPhase a, const ConvPhase b) {
  ConvPhase c = {is ? a.pixels : b.pixels, is ? a.map_pixels : b.map_pixels, is ? a.row_pixels : b.row_pixels,
                 {is ? a.first[0] : b.first[0], is ? a.first[1] : b.first[1]},
                 {is ? a.taps[0] : b.taps[0], is ? a.taps[1] : b.taps[1]},
                 is ? a.weight_first : b.weight_first, is ? a.target : b.target};
  return c;
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void implicit(__global void *target_base, ulong target_offset, __global const void *source_base,
                       ulong source_offset, __global const void *weight_base, ulong weight_offset,
                       __global const void *bias_base, ulong bias_offset, const ConvImplicitParams p) {
  __local float As[2][BK][BM] __attribute__((aligned(16)));
  __local float Bs[2][BK][BN] __attribute__((aligned(16)));
  const int n0 = (int)get_group_id(0) * BN, m0 = (int)get_group_id(1) * BM;
  ConvPhase phase = p.phases[0];
#if !PIECES
  UNROLL for (int k = 1; k < CONV_PHASES; ++k) phase = chosen(get_group_id(2) == k, p.phases[k], phase);
#endif
  // Another phase may have more pixels: this group has nothing to do then.
  const int all =
      n0 < (int)phase.pixels ? (int)(phase.taps[0] * phase.taps[1]) * ((int)p.padded_channels / BK) : 0;
  const int first = PIECES ? (int)get_group_id(2) * (int)p.steps : 0;
  const int last = PIECES ? min(first + (int)p.steps, all) : all;
  const ItemTile at = item_tile(get_local_id(0), WX, TM, TN);
  Loader loader = loader_of(n0, m0, first, AT_RAW(source_base, source_offset),
                            AT_RAW(weight_base, weight_offset), phase, p);
  Step step;
  float acc[TM][TN];
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;
  bool inside = false;
  if (first < last) inside = go_to_tap(&loader, phase, p);
#define LOAD_STEP(n)                                  \
  {                                                   \
    load_step(&loader, inside, &step, p);             \
    inside = next_step(&loader, inside, phase, p);    \
  }
#define STORE_STEP(b) store_step(&loader, &step, As[b], Bs[b])
#define A_LINE(b, k) As[b][k]
#define B_LINE(b, k) Bs[b][k]
  ADD_STEPS(int, first, last, LOAD_STEP, STORE_STEP, A_LINE, B_LINE, at, acc)
#if !PIECES
  end_results(acc, m0, at, epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride), p);
#endif
  store_results(acc, m0, n0, at,
                AT(RESULT, target_base, target_offset) + (PIECES ? get_group_id(2) * p.piece : phase.target),
                phase, p);
}
