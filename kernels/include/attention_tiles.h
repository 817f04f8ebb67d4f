// What attention of GPUs without matrix units shares: tiles of BM x BN scores in the registers of a
// work-group, their masks and dropout. Needs TYPE, DEPTH, BM, ITEMS, BK; MASK, M and DROPOUT as in
// attention.h.
#ifndef OCLTENSOR_ATTENTION_TILES_H
#define OCLTENSOR_ATTENTION_TILES_H
#include "types.h"
#define VEC 4
#include "element_vectors.h"
#include "register_tile.h"
#define COMPUTE f32
typedef float T;
#include "flash_params.h"
#include "attention.h"
#include "attention_order.h"

#define BN 64
#define TM 8                         // rows of an item
#define WX (ITEMS / BM)              // runs of 32 items along the columns
#define SCORES (BN / (LX * WX))      // columns of an item's scores
#define RESULTS (DEPTH / (LX * WX))  // and of its results
#define SHARERS (LX * WX)            // items that share a row
#define PITCH (BM + 4)               // of operands in local memory
#define LOG2_E 1.44269504f

#define unpack_4 CAT(unpack4_, TYPE)

// This item's place in the tiles: the scores and results that it has, which are of the same rows, and which
// of the SHARERS of these rows it is.
typedef struct {
  ItemTile scores, results;
  int sharer;
} Place;
INLINE Place place_of_item(int item) {
  const int lane = item & 31, run = item >> 5;
  Place at = {item_tile(item, WX, TM, SCORES), item_tile(item, WX, TM, RESULTS), run % WX * LX + lane % LX};
  return at;
}

// What a work-group computes: of a head, the `all`-th of all batches, queries from `first` on.
typedef struct {
  int first, all;
  __global const STYPE(TYPE) *query, *key, *value;  // the head's
  __global const STYPE(M) *mask;
} Head;

// Vector i of this item, of a tile of rows first .. that run along k, in step `step` of BK numbers; zeros
// where there is nothing, behind `count` rows of `depth` numbers. Stored to lines of `pitch` numbers.
#define ALONG_ROW(i) (get_local_id(0) / (BK / 4) + (i) * (ITEMS / (BK / 4)))
#define ALONG_K (get_local_id(0) % (BK / 4) * 4)
INLINE RAW(4, TYPE) load_along(__global const STYPE(TYPE) *rows, long stride, int first, int count, int depth,
                               int step, int i) {
  const int row = first + (int)ALONG_ROW(i), k = step * BK + (int)ALONG_K;
  RAW(4, TYPE) v = (RAW(4, TYPE))(0);
  if (row < count && k < depth) v = *(__global const RAW(4, TYPE) *)(rows + (long)row * stride + k);
  return v;
}
INLINE void store_along(__local float *tile, int pitch, RAW(4, TYPE) vector, int i) {
  const float4 v = unpack_4(vector);
  __local float *to = tile + (int)ALONG_K * pitch + (int)ALONG_ROW(i);
  to[0] = v.x;
  to[pitch] = v.y;
  to[2 * pitch] = v.z;
  to[3 * pitch] = v.w;
}

// Scores times LOG2_UNIT are in units of log2, in which the lowest number of a mask would be infinite.
#if MASK == 1
#define WITH_MASK(s, m) ((m) != 0 ? (s) : -INFINITY)
#define LOG2_UNIT 1.0f
#elif MASK == 2
#define WITH_MASK(s, m) ((s) + (float)(m))
#define LOG2_UNIT LOG2_E
#else
#define LOG2_UNIT 1.0f
#endif
// Scales and masks scores of keys from `key0` on.
INLINE void finish_scores(float s[TM][SCORES], const Head head, int key0, const ItemTile at, float scale,
                          const FlashParams p) {
  const int queries = p.scores.all_queries, keys = p.scores.keys;
  const bool causal = p.scores.causal;
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < SCORES; ++j) {
#if MASK
    const int row = head.first + at.row + row_offset(i), column = key0 + at.column + column_offset(j);
    s[i][j] = WITH_MASK(s[i][j] * scale,
                        LOAD(M, head.mask, min(row, queries - 1) * p.scores.mask_row +
                                               min(column, keys - 1) * p.scores.mask_column));
#else
    s[i][j] *= scale;
#endif
  }
  if (key0 + BN > (causal ? min(keys, head.first + 1) : keys))
    UNROLL for (int i = 0; i < TM; ++i) {
      const int last = causal ? min(keys, head.first + at.row + row_offset(i) + 1) : keys;
      UNROLL for (int j = 0; j < SCORES; ++j)
        s[i][j] = key0 + at.column + column_offset(j) < last ? s[i][j] : -INFINITY;
    }
}

#if DROPOUT
// Sets to 0 the weights that are dropped.
INLINE void drop(float s[TM][SCORES], const Head head, int key0, const ItemTile at, const AttentionParams p) {
  UNROLL for (int i = 0; i < TM; ++i) {
    UNROLL for (int j = 0; j < SCORES; j += 4) {
      const uint kept = kept_of_4(p, head.all, head.first + at.row + row_offset(i),
                                  key0 + at.column + column_offset(j));
      UNROLL for (int u = 0; u < 4; ++u) s[i][j + u] = kept >> (4 * u) & 1 ? s[i][j + u] : 0.0f;
    }
  }
}
#endif
#endif
