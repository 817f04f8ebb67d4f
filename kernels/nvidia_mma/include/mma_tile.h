// One tile of BM x BN of a product on matrix units: a ring of STAGES buffers in local memory that all
// work-items fill, BK of k each, and warps with WM x WN of the results in registers.
// Defines, besides those of mma.h: TF32_PARTS 0 (16-bit types), 1 (TF32), or 2: float32 as the sum of two
// TF32 numbers, three of whose products are added; BM, BN, WM, WN; LINE_BYTES (of k in a buffer: 64 or 128);
// STAGES; AHEAD (1: registers receive the next step's fragments during a step's products); A_ALONG_K,
// B_ALONG_K (1: lines of the operand are contiguous along k, 0: across it). Lines begin at multiples of 16
// bytes.
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
#if EMULATED
#define TILE_BYTES (RING_BYTES + ITEMS * EXCHANGE_WORDS * 4)
#define OFTEN                            // unrolling would take PoCL's compiler minutes
#else
#define TILE_BYTES RING_BYTES
#define OFTEN UNROLL
#endif

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

// ---- From global memory to buffers: a work-item copies the same chunk of every PACE-th line.

typedef struct {
  __global const char *from;  // its first chunk in the next tile
  long pace, step;            // bytes to its next chunk, and to the next tile along k
  int line, chunk;
  int lines_left, elements_left;  // from its first chunk to the ends of the operand
} Chunks;

// `first` is the first row (column) of the tile, of `all`; k runs from `k` to `all_k`.
INLINE Chunks chunks_of(__global const char *operand, long line_elements, int along_k, int width, int first,
                        int all, int k, int all_k) {
  const int item = get_local_id(0);
  Chunks c;
  c.line = item / CHUNKS(along_k, width);
  c.chunk = item % CHUNKS(along_k, width);
  const int line = (along_k ? first : k) + c.line, at = (along_k ? k : first) + c.chunk * CHUNK_ELEMENTS;
  c.from = operand + (line * line_elements + at) * ELEMENT_BYTES;
  c.pace = line_elements * PACE(along_k, width) * ELEMENT_BYTES;
  c.step = along_k ? LINE_BYTES : line_elements * BK * ELEMENT_BYTES;
  c.lines_left = (along_k ? all : all_k) - line;
  c.elements_left = (along_k ? all_k : all) - at;
  return c;
}
INLINE void next_tile(Chunks *c, int along_k) {
  c->from += c->step;
  if (along_k) c->elements_left -= BK;
  else c->lines_left -= BK;
}
// Of the item's copy `i`: the bytes that exist, whether the buffer has it, and where.
#define BYTES_OF(c, i, along_k, width)                                                             \
  ((c)->lines_left > (i) * PACE(along_k, width)                                                    \
       ? clamp((c)->elements_left, 0, CHUNK_ELEMENTS) * ELEMENT_BYTES                              \
       : 0)
#define HAS_COPY(c, along_k, width) \
  (LINES(along_k, width) % PACE(along_k, width) == 0 || (c)->line < LINES(along_k, width))
#define PLACE_OF(c, i, along_k, width)                                                      \
  ((along_k) ? place_along_k((c)->line + (i) * PACE(along_k, width), (c)->chunk)            \
             : place_across_k((c)->line + (i) * PACE(along_k, width), (c)->chunk, CHUNKS(along_k, width)))

#if ASYNC
INLINE void copy_tile(__local uchar *tiles, uint to, Chunks *c, int along_k, int width) {
  if (HAS_COPY(c, along_k, width)) {
    UNROLL for (int i = 0; i < COPIES(along_k, width); ++i)
      copy_chunk(tiles, to + PLACE_OF(c, i, along_k, width), c->from + i * c->pace,
                 BYTES_OF(c, i, along_k, width));
  }
  next_tile(c, along_k);
}
#else
INLINE void read_tile(uint4 *held, Chunks *c, int along_k, int width) {
  UNROLL for (int i = 0; i < COPIES(along_k, width); ++i)
    held[i] = load_chunk(c->from + i * c->pace, BYTES_OF(c, i, along_k, width));
  next_tile(c, along_k);
}
INLINE void write_tile(__local uchar *tiles, uint to, const uint4 *held, const Chunks *c, int along_k,
                       int width) {
  if (!HAS_COPY(c, along_k, width)) return;
  UNROLL for (int i = 0; i < COPIES(along_k, width); ++i)
    store_chunk(tiles, to + PLACE_OF(c, i, along_k, width), held[i]);
}
#endif

// ---- From buffers to fragments: step `s` of the buffer at `at`, for a warp whose results begin at row
// (column) `first` of the tile.

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

INLINE void load_a(__local const uchar *tiles, Fragments *f, uint at, int first, int s, int lane) {
  OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) {
    uint4 v;
#if A_ALONG_K
    LOAD_MATRICES(v, tiles, lane, A_ROW)
#elif !TF32_PARTS
    LOAD_TURNED(v, tiles, lane, A_ROW)
#else
    const int row = first + i * 16 + (lane >> 2), k = s * 8 + (lane & 3);
    v = (uint4)(WORD(row, k, BM), WORD(row + 8, k, BM), WORD(row, k + 4, BM), WORD(row + 8, k + 4, BM));
#endif
    f->a[i] = v;
  }
}
INLINE void load_b(__local const uchar *tiles, Fragments *f, uint at, int first, int s, int lane) {
#if B_ALONG_K || !TF32_PARTS
  OFTEN for (int j = 0; j < FRAGMENTS_N; j += 2) {
    uint4 v;
#if B_ALONG_K
    LOAD_MATRICES(v, tiles, lane, B_ROW)
#else
    LOAD_TURNED(v, tiles, lane, B_ROW)
#endif
    f->b[j][0] = v.x;
    f->b[j][1] = v.y;
    f->b[j + 1][0] = v.z;
    f->b[j + 1][1] = v.w;
  }
#else
  OFTEN for (int j = 0; j < FRAGMENTS_N; ++j) {
    const int column = first + j * 8 + (lane >> 2), k = s * 8 + (lane & 3);
    f->b[j][0] = WORD(column, k, BN);
    f->b[j][1] = WORD(column, k + 4, BN);
  }
#endif
}

// ---- Products: d[j][i] is the sum of row fragment i and column fragment j.

#if TF32_PARTS
INLINE uint4 tf32_of_4(uint4 v) { return (uint4)(tf32_of(v.x), tf32_of(v.y), tf32_of(v.z), tf32_of(v.w)); }
INLINE uint rest_of(uint x, uint large) { return tf32_of(as_uint(as_float(x) - as_float(large))); }
#endif

INLINE void multiply_fragments(__local uchar *tiles, float4 d[][FRAGMENTS_M], Fragments *f) {
#if TF32_PARTS == 0
  OFTEN for (int j = 0; j < FRAGMENTS_N; ++j) multiply(tiles, d[j], f->a, f->b[j][0], f->b[j][1]);
#elif TF32_PARTS == 1
  OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) f->a[i] = tf32_of_4(f->a[i]);
  OFTEN for (int j = 0; j < FRAGMENTS_N; ++j)
    multiply(tiles, d[j], f->a, tf32_of(f->b[j][0]), tf32_of(f->b[j][1]));
#else
  // The unit cuts off bits when it adds: it sums one step alone, and ordinary additions do the rest.
  uint4 rest[FRAGMENTS_M];
  OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) {
    const uint4 v = f->a[i], large = tf32_of_4(v);
    rest[i] = (uint4)(rest_of(v.x, large.x), rest_of(v.y, large.y), rest_of(v.z, large.z),
                      rest_of(v.w, large.w));
    f->a[i] = large;
  }
  OFTEN for (int j = 0; j < FRAGMENTS_N; ++j) {
    const uint large_0 = tf32_of(f->b[j][0]), large_1 = tf32_of(f->b[j][1]);
    float4 sums[FRAGMENTS_M];
    OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) sums[i] = (float4)(0.0f);
    multiply(tiles, sums, rest, large_0, large_1);
    multiply(tiles, sums, f->a, rest_of(f->b[j][0], large_0), rest_of(f->b[j][1], large_1));
    multiply(tiles, sums, f->a, large_0, large_1);
    OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) d[j][i] += sums[i];
  }
#endif
}

// ---- The loop over `count` buffers of k. `row` and `column` are where the warp's results begin in the tile.

#define LOAD_FRAGMENTS(f, stage, s)                                                    \
  {                                                                                    \
    const uint at_ = ring + (stage) * STAGE_BYTES;                                     \
    load_a(tiles, &(f), at_, row, s, lane);                                            \
    load_b(tiles, &(f), at_ + A_BYTES, column, s, lane);                               \
  }
#define NEXT(stage) ((stage) + 1 == STAGES ? 0 : (stage) + 1)

#if ASYNC
#define FETCH(stage)                                                                   \
  {                                                                                    \
    const uint to_ = ring + (stage) * STAGE_BYTES;                                     \
    copy_tile(tiles, to_, &a, A_ALONG_K, BM);                                          \
    copy_tile(tiles, to_ + A_BYTES, &b, B_ALONG_K, BN);                                \
  }
// The oldest buffer has arrived, and nobody reads the one before it any more.
#define ARRIVED               \
  WAIT_FOR_COPIES(STAGES - 2) \
  barrier(CLK_LOCAL_MEM_FENCE);
#else
#define READ                           \
  read_tile(held_a, &a, A_ALONG_K, BM); \
  read_tile(held_b, &b, B_ALONG_K, BN);
#define WRITE(stage)                                                                   \
  {                                                                                    \
    const uint to_ = ring + (stage) * STAGE_BYTES;                                     \
    write_tile(tiles, to_, held_a, &a, A_ALONG_K, BM);                                 \
    write_tile(tiles, to_ + A_BYTES, held_b, &b, B_ALONG_K, BN);                       \
  }
#endif

INLINE void sum_along_k(__local uchar *tiles, float4 d[][FRAGMENTS_M], Chunks a, Chunks b, int count, int row,
                        int column) {
  const uint ring = PLACE(tiles);
  const int lane = get_local_id(0) & 31;
  OFTEN for (int j = 0; j < FRAGMENTS_N; ++j)
    OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) d[j][i] = (float4)(0.0f);
  int stage = 0;
#if !ASYNC  // two buffers: registers receive the next one while this one is multiplied
  uint4 held_a[COPIES(A_ALONG_K, BM)], held_b[COPIES(B_ALONG_K, BN)];
  Fragments f;
  READ
  WRITE(0)
  for (int tile = 0; tile < count; ++tile) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (tile + 1 < count) { READ }
    OFTEN for (int s = 0; s < STEPS; ++s) {
      LOAD_FRAGMENTS(f, stage, s)
      multiply_fragments(tiles, d, &f);
    }
    stage = NEXT(stage);
    if (tile + 1 < count) WRITE(stage)
  }
#else
  int free_stage = STAGES - 1;
  OFTEN for (int s = 0; s < STAGES - 1; ++s) {
    if (s < count) FETCH(s)
    COMMIT_COPIES
  }
#if AHEAD
  Fragments f[2];
  ARRIVED
  LOAD_FRAGMENTS(f[0], 0, 0)
#else
  Fragments f[1];
#endif
  for (int tile = 0; tile < count; ++tile) {
#if !AHEAD
    ARRIVED
#endif
    if (tile + STAGES - 1 < count) FETCH(free_stage)
    COMMIT_COPIES
    OFTEN for (int s = 0; s < STEPS; ++s) {
#if AHEAD
      const int now = s & 1;
      if (s + 1 < STEPS) LOAD_FRAGMENTS(f[now ^ 1], stage, s + 1)
      else if (tile + 1 < count) {
        ARRIVED
        LOAD_FRAGMENTS(f[now ^ 1], NEXT(stage), 0)
      }
#else
      const int now = 0;
      LOAD_FRAGMENTS(f[0], stage, s)
#endif
      multiply_fragments(tiles, d, &f[now]);
    }
    stage = NEXT(stage);
    free_stage = NEXT(free_stage);
  }
#endif
}
#endif
