// One tile of BM x BN of a product on matrix units: a ring of STAGES buffers in local memory that all
// work-items fill, BK of k each, and warps with WM x WN of the results in registers.
// Defines, besides those of mma.h: TF32_PARTS 0 (16-bit types, int8), 1 (TF32), or 2: float32 as the sum of
// two TF32 numbers, three of whose products are added; BM, BN, WM, WN; LINE_BYTES (of k in a buffer: 64 or
// 128); STAGES; AHEAD (1: registers receive the next step's fragments during a step's products; not of TF32);
// A_ALONG_K, B_ALONG_K (1: lines of the operand are contiguous along k, as those of int8 must be, 0: across
// it). Lines begin at multiples of 16 bytes.
#ifndef OCLTENSOR_MMA_TILE_H
#define OCLTENSOR_MMA_TILE_H

#define WARPS_N (BN / WN)
#define ITEMS (BM / WM * WARPS_N * 32)
#define FRAGMENTS_M (WM / 16)
#define FRAGMENTS_N (WN / 8)
#define A_BYTES (BM * LINE_BYTES)
#define B_BYTES (BN * LINE_BYTES)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define RING_BYTES (STAGES * STAGE_BYTES)
#include "mma.h"

#define BK (LINE_BYTES / ELEMENT_BYTES)
#define STEPS (LINE_BYTES / STEP_BYTES)  // products of fragments along a buffer

// ---- Buffers: where chunk `chunk` of line `line` is. Eight lines that are read at once, at one chunk, are
// in different banks.

INLINE uint place_along_k(uint line, uint chunk) {
#if LINE_BYTES == 128
  return line * 128 + ((chunk ^ (line & 7)) << 4);
#else
  return line * 64 + ((chunk ^ ((line >> 1) & 3)) << 4);
#endif
}
// A line is a position along k with `chunks` chunks of rows (columns).
INLINE uint place_across_k(uint line, uint chunk, uint chunks) {
#if TF32_PARTS
  const uint turn = (line & 3) << 1;
#else
  const uint turn = line & 7;
#endif
  return line * chunks * CHUNK + ((chunk ^ (turn & (chunks - 1))) << 4);
}
#define CHUNKS(ALONG_K, WIDTH) ((ALONG_K) ? LINE_BYTES / CHUNK : (WIDTH) / CHUNK_ELEMENTS)  // of a line
#define LINES(ALONG_K, WIDTH) ((ALONG_K) ? (WIDTH) : BK)
#define PACE(ALONG_K, WIDTH) (ITEMS / CHUNKS(ALONG_K, WIDTH))  // lines between chunks of an item
#define COPIES(ALONG_K, WIDTH) \
  ((LINES(ALONG_K, WIDTH) + PACE(ALONG_K, WIDTH) - 1) / PACE(ALONG_K, WIDTH))
#if !ASYNC
typedef struct {  // an item's chunks of the next buffer
  uint4 a[COPIES(A_ALONG_K, BM)], b[COPIES(B_ALONG_K, BN)];
} Held;
#endif

// ---- From buffers to fragments: step `s` of a buffer. `first`: first row (column) of the warp's results.

typedef struct {
  uint4 a[FRAGMENTS_M];
  uint b[FRAGMENTS_N][2];
} Fragments;

#if A_ALONG_K
#define A_ROW(l) (at + place_along_k(first + i * 16 + ((l)&15), 2 * s + ((l) >> 4)))
#else
#define A_ROW(l)                                                                                      \
  (at + place_across_k(s * 16 + ((l)&7) + ((l) >> 4) * 8, first / 8 + i * 2 + (((l) >> 3) & 1), BM / 8))
#endif
#if B_ALONG_K
#define B_ROW(l) (at + place_along_k(first + j * 8 + ((l)&7) + ((l) >> 4) * 8, 2 * s + (((l) >> 3) & 1)))
#else
#define B_ROW(l) (at + place_across_k(s * 16 + ((l)&15), first / 8 + j + ((l) >> 4), BN / 8))
#endif
// TF32 across k, which cannot be turned: the word of row (column) `r`, position `k`.
#define WORD(r, k, width) \
  load_word(tiles, at + place_across_k(k, (uint)(r) >> 2, (width) / 4) + ((uint)(r)&3) * 4)

#define LOADS (FRAGMENTS_M + FRAGMENTS_N / 2)
// Load q of a step: row fragment q, or the next two column fragments. The warp's results begin at `row` and
// `column`, the buffer at `at`.
INLINE void load_fragment(__local const uchar *tiles, Fragments *f, uint at, int row, int column, int s,
                          int lane, int q) {
  uint4 v;
  if (q < FRAGMENTS_M) {
    const int i = q, first = row;
#if A_ALONG_K
    LOAD_MATRICES(v, tiles, lane, A_ROW)
#elif !TF32_PARTS
    LOAD_TURNED(v, tiles, lane, A_ROW)
#else
    const int x = first + i * 16 + (lane >> 2), k = s * 8 + (lane & 3);
    v = (uint4)(WORD(x, k, BM), WORD(x + 8, k, BM), WORD(x, k + 4, BM), WORD(x + 8, k + 4, BM));
#endif
    f->a[i] = v;
  } else {
    const int j = (q - FRAGMENTS_M) * 2, first = column;
    at += A_BYTES;
#if B_ALONG_K
    LOAD_MATRICES(v, tiles, lane, B_ROW)
#elif !TF32_PARTS
    LOAD_TURNED(v, tiles, lane, B_ROW)
#else
    const int x = first + j * 8 + (lane >> 2), k = s * 8 + (lane & 3);
    v = (uint4)(WORD(x, k, BN), WORD(x, k + 4, BN), WORD(x + 8, k, BN), WORD(x + 8, k + 4, BN));
#endif
    f->b[j][0] = v.x;
    f->b[j][1] = v.y;
    f->b[j + 1][0] = v.z;
    f->b[j + 1][1] = v.w;
  }
}

// ---- Products: d[j][i] is the sum of row fragment i and column fragment j.

#if TF32_PARTS
INLINE uint4 tf32_of_4(uint4 v) { return (uint4)(tf32_of(v.x), tf32_of(v.y), tf32_of(v.z), tf32_of(v.w)); }
INLINE uint rest_of(uint x, uint large) { return tf32_of(as_uint(as_float(x) - as_float(large))); }
#endif

INLINE void multiply_fragments(__local uchar *tiles, sum4_t d[][FRAGMENTS_M], Fragments *f) {
#if TF32_PARTS == 0
  UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) multiply(tiles, d[j], f->a, f->b[j][0], f->b[j][1]);
#elif TF32_PARTS == 1
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) f->a[i] = tf32_of_4(f->a[i]);
  UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j)
    multiply(tiles, d[j], f->a, tf32_of(f->b[j][0]), tf32_of(f->b[j][1]));
#else
  // The unit cuts off bits when it adds: it sums one step alone, and ordinary additions do the rest.
  uint4 rest[FRAGMENTS_M];
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) {
    const uint4 v = f->a[i], large = tf32_of_4(v);
    rest[i] = (uint4)(rest_of(v.x, large.x), rest_of(v.y, large.y), rest_of(v.z, large.z),
                      rest_of(v.w, large.w));
    f->a[i] = large;
  }
  UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) {
    const uint large_0 = tf32_of(f->b[j][0]), large_1 = tf32_of(f->b[j][1]);
    float4 sums[FRAGMENTS_M];
    UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) sums[i] = (float4)(0.0f);
    multiply(tiles, sums, rest, large_0, large_1);
    multiply(tiles, sums, f->a, rest_of(f->b[j][0], large_0), rest_of(f->b[j][1], large_1));
    multiply(tiles, sums, f->a, large_0, large_1);
    UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) d[j][i] += sums[i];
  }
#endif
}
#endif
