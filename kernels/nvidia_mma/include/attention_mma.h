// What attention forward and backward on matrix units by mma.sync share: rows of operands in local memory,
// their products, and what lies between two products while scores are in registers. A warp has WARP_ROWS rows
// of the operands that a work-group keeps, and goes with the others through those that are streamed, BN at
// once. Elements of fragment (j, i) of scores are in row 16 i + lane / 4 (z and w: 8 further) and column
// 8 j + 2 (lane % 4) (y and w: 1 further).
// Defines, besides those of mma.h: DEPTH (of rows in local memory: 32, 64, 96 or 128, filled with zeros),
// FRAGMENTS_M (fragments of 16 rows of a warp), WARPS, BN; CAUSAL; MASK (M its type) and DROPOUT as in
// attention.h. The includer says RING_BYTES, the local memory that it takes.
#ifndef OCLTENSOR_ATTENTION_MMA_H
#define OCLTENSOR_ATTENTION_MMA_H
#include "types.h"
#define COMPUTE f32
typedef float T;
#include "attention.h"
#include "flash_params.h"
#define ITEMS (32 * WARPS)
#define WARP_ROWS (16 * FRAGMENTS_M)
#define BM (WARPS * WARP_ROWS)
#define ROW_BYTES (2 * DEPTH)
#include "mma_results.h"

#define ROW_CHUNKS (ROW_BYTES / CHUNK)
#define FRAGMENTS_N (BN / 8)     // across a block of scores
#define FRAGMENTS_D (DEPTH / 8)  // across a result
#define FOR_FRAGMENTS                         \
  UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) \
    UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i)
#define FOR_FOURS                                \
  UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; j += 4) \
    UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i)

// ---- Rows: operands in memory, and blocks of them in local memory.

typedef struct {
  __global const char *from;
  long step;         // bytes from row to row, a multiple of 16
  int count, bytes;  // rows that there are, and of a row
} Rows;

INLINE Rows rows_of(__global const void *base, ulong offset, const FlashTensor t, long batch, long head,
                    int count, int depth) {
  Rows r;
  r.from = (__global const char *)base + offset + (batch * t.batch + head * t.head) * 2;
  r.step = t.row * 2;
  r.count = count;
  r.bytes = depth * 2;
  return r;
}

// Where a chunk of a row is. Eight rows that are read at once, at one chunk, are in different banks.
INLINE uint place(uint row, uint chunk) {
#if DEPTH % 64 == 0
  return row * ROW_BYTES + ((chunk ^ (row & 7)) << 4);
#else
  return row * ROW_BYTES + ((chunk ^ ((row >> 1) & 3)) << 4);
#endif
}
#if BN * ROW_CHUNKS % ITEMS != 0 || BM * ROW_CHUNKS % ITEMS != 0
#error work-items have no equal numbers of copies
#endif
#define COPIES(rows) ((rows)*ROW_CHUNKS / ITEMS)  // of an item
// Of copy `i` of item `item`, of rows `first` ..: its row and chunk there, where it is in memory, and the
// bytes of it that exist.
#define ROW_OF(item, i) (((item) + (i)*ITEMS) / ROW_CHUNKS)
#define CHUNK_OF(item, i) (((item) + (i)*ITEMS) % ROW_CHUNKS)
#define PLACE_OF(item, i) place(ROW_OF(item, i), CHUNK_OF(item, i))
INLINE __global const char *source_of(const Rows r, int first, int item, int i) {
  return r.from + (first + ROW_OF(item, i)) * r.step + CHUNK_OF(item, i) * CHUNK;
}
INLINE int bytes_of(const Rows r, int first, int item, int i) {
  return first + ROW_OF(item, i) < r.count ? clamp(r.bytes - CHUNK_OF(item, i) * CHUNK, 0, CHUNK) : 0;
}

// Copies rows first .. first + count - 1; what does not exist becomes zeros.
INLINE void bring_rows(__local uchar *tiles, uint to, const Rows r, int first, int count) {
  int item = get_local_id(0);
  HIDE(item)
#if ASYNC
  if (r.bytes % CHUNK == 0) {
    UNROLL_ON_DEVICE for (int i = 0; i < COPIES(count); ++i)
      copy_chunk(tiles, to + PLACE_OF(item, i), source_of(r, first, item, i),
                 bytes_of(r, first, item, i) > 0 ? CHUNK : 0);
  } else {
    UNROLL_ON_DEVICE for (int i = 0; i < COPIES(count); ++i)
      copy_chunk(tiles, to + PLACE_OF(item, i), source_of(r, first, item, i), bytes_of(r, first, item, i));
  }
#else
  UNROLL_ON_DEVICE for (int i = 0; i < COPIES(count); ++i)
    store_chunk(tiles, to + PLACE_OF(item, i),
                load_chunk(source_of(r, first, item, i), bytes_of(r, first, item, i)));
#endif
}

// ---- Products

#define LEFT_ROW(l) (at_a + place(row + i * 16 + ((l)&15), 2 * k + ((l) >> 4)))
#define RIGHT_ROW(l) (at_b + place(j * 8 + ((l)&7) + ((l) >> 4) * 8, 2 * k + (((l) >> 3) & 1)))
#define TURNED_ROW(l) (at_b + place(k * 16 + ((l)&15), j + ((l) >> 4)))

// d = the warp's rows, which begin at `row` of those at `at_a`, times the BN rows at `at_b`.
INLINE void multiply_rows(__local uchar *tiles, float4 d[][FRAGMENTS_M], uint at_a, int row, uint at_b) {
  int lane = get_local_id(0) & 31;
  HIDE(lane)
  FOR_FRAGMENTS d[j][i] = (float4)(0.0f);
  UNROLL_ON_DEVICE for (int k = 0; k < DEPTH / 16; ++k) {
    uint4 a[FRAGMENTS_M];
    UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) LOAD_MATRICES(a[i], tiles, lane, LEFT_ROW)
    UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; j += 2) {
      uint4 b;
      LOAD_MATRICES(b, tiles, lane, RIGHT_ROW)
      multiply(tiles, d[j], a, b.x, b.y);
      multiply(tiles, d[j + 1], a, b.z, b.w);
    }
  }
}

// d += s, rounded to TYPE, times the BN rows at `at_b`: sums of two fragments are a left fragment of k.
INLINE void add_products(__local uchar *tiles, float4 d[][FRAGMENTS_M], float4 s[][FRAGMENTS_M], uint at_b) {
  int lane = get_local_id(0) & 31;
  HIDE(lane)
  UNROLL_ON_DEVICE for (int k = 0; k < BN / 16; ++k) {
    uint4 a[FRAGMENTS_M];
    UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) {
      const float4 low = s[2 * k][i], high = s[2 * k + 1][i];
      a[i] = (uint4)(pair_from(low.x, low.y), pair_from(low.z, low.w), pair_from(high.x, high.y),
                     pair_from(high.z, high.w));
    }
    UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_D; j += 2) {
      uint4 b;
      LOAD_TURNED(b, tiles, lane, TURNED_ROW)
      multiply(tiles, d[j], a, b.x, b.y);
      multiply(tiles, d[j + 1], a, b.z, b.w);
    }
  }
}

// ---- Results

// Stores the lane's numbers of the warp's rows, fragment i times factor[i]; `row` is the lane's first one of
// `count`, `to` the head's first row, `step` elements lie between rows.
INLINE void store_results(__local uchar *tiles, float4 d[][FRAGMENTS_M], const float4 *factor,
                          __global ushort *to, long step, int row, int count, int depth) {
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i)
    UNROLL_ON_DEVICE for (int h = 0; h < 2; ++h) {
      const int r = row + i * 16 + h * 8;
      float2 v[FRAGMENTS_D];
      UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_D; ++j)
        v[j] = h ? d[j][i].zw * factor[i].zw : d[j][i].xy * factor[i].xy;
      store_row(tiles, to + r * step, 1, r < count ? depth : 0, v, FRAGMENTS_D);
    }
}
INLINE __global ushort *head_of(__global void *base, ulong offset, const FlashTensor t, long batch,
                                long head) {
  return (__global ushort *)((__global char *)base + offset) + batch * t.batch + head * t.head;
}

INLINE float float_from_neighbour(__local uchar *tiles, float v, uint across) {
  return as_float(from_neighbour(tiles, as_uint(v), across));
}

#include "attention_lanes.h"
#if MASK == 0
#define MASKED_AT(s, scale, mask, at) (s)
#else
#define MASKED_AT(s, scale, mask, at) WITH_MASK(s, scale, LOAD(M, mask, at))
#endif
#if DROPOUT
// Elements of fragment j, or 0 where `kept` says so in its bits `at`.
#define KEEP(v, kept, j, at)                                                                     \
  (float4)(IS_KEPT(kept, j, 0, at(j, 0)) ? (v).x : 0, IS_KEPT(kept, j, 1, at(j, 0)) ? (v).y : 0, \
           IS_KEPT(kept, j, 0, at(j, 1)) ? (v).z : 0, IS_KEPT(kept, j, 1, at(j, 1)) ? (v).w : 0)
#endif
#endif
