// What attention of GPUs without matrix units shares: tiles of BM x BN scores in the registers of a
// work-group, their masks and dropout. Needs TYPE, BM, ITEMS, BK; MASK, M and DROPOUT as in attention.h;
// RESULTS, the columns of an item's results.
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
#define TM 8                     // rows of an item
#define WX (ITEMS / BM)          // runs of 32 items along the columns
#define SCORES (BN / (LX * WX))  // columns of an item's scores
#define SHARERS (LX * WX)        // items that share a row
#define PITCH (BM + 4)           // of operands in local memory
#define LOG2_E 1.44269504f

// This item's place in the tiles: its rows are ROW(0) .. ROW(TM - 1), its columns of scores COLUMN(0) ..
#define PLACES                                                                               \
  const int t = get_local_id(0), lane = t & 31, run = t >> 5;                                \
  const ItemTile scores = item_tile(t, WX, TM, SCORES), results = item_tile(t, WX, TM, RESULTS); \
  const int mrow = scores.row, sharer = run % WX * LX + lane % LX;                           \
  const int score_column = scores.column, result_column = results.column;
#define ROW(i) (mrow + (i) / 4 * 4 * LY + (i) % 4)
#define COLUMN(j) (score_column + (j) / 4 * 4 * LX + (j) % 4)

#define OPERAND(name, which)                                                        \
  (AT_CONST(TYPE, CAT(name, _base), CAT(name, _offset)) + batch * p.name.batch + (which) * p.name.head)
#define unpack_4 CAT(unpack4_, TYPE)
// Vector i of this item, of a tile of rows `first` .. that run along k, in step `step` of BK numbers; zeros
// where there is nothing.
#define ALONG_ROW(i) (t / (BK / 4) + (i) * (ITEMS / (BK / 4)))
#define ALONG_K (t % (BK / 4) * 4)
#define LOAD_ALONG(v, rows, stride, first, count, step, i)                                  \
  {                                                                                         \
    const int row_ = (first) + ALONG_ROW(i), k_ = (step) * BK + ALONG_K;                    \
    v = (RAW(4, TYPE))(0);                                                                  \
    if (row_ < (count) && k_ < depth)                                                       \
      v = *(__global const RAW(4, TYPE) *)((rows) + (long)row_ * (stride) + k_);            \
  }
#define STORE_ALONG(tile, v, i)                    \
  {                                                \
    const float4 v_ = unpack_4(v);                 \
    tile[ALONG_K + 0][ALONG_ROW(i)] = v_.x;        \
    tile[ALONG_K + 1][ALONG_ROW(i)] = v_.y;        \
    tile[ALONG_K + 2][ALONG_ROW(i)] = v_.z;        \
    tile[ALONG_K + 3][ALONG_ROW(i)] = v_.w;        \
  }

#if MASK
#define MASK_OF_HEAD                                                                              \
  __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset) +                           \
                                  batch * p.scores.mask_strides[0] + head * p.scores.mask_strides[1];
#define LOAD_MASK(row, column) \
  LOAD(M, mask, min(row, queries - 1) * p.scores.mask_row + min(column, keys - 1) * p.scores.mask_column)
#else
#define MASK_OF_HEAD
#endif
// Scores times LOG2_UNIT are in units of log2, in which the lowest number of a mask would be infinite.
#if MASK == 1
#define WITH_MASK(s, row, column) (LOAD_MASK(row, column) != 0 ? (s) : -INFINITY)
#define LOG2_UNIT 1.0f
#elif MASK == 2
#define WITH_MASK(s, row, column) ((s) + (float)LOAD_MASK(row, column))
#define LOG2_UNIT LOG2_E
#else
#define WITH_MASK(s, row, column) (s)
#define LOG2_UNIT 1.0f
#endif
// Scales and masks scores of queries from `first` on and keys from `key0` on.
#define FINISH_SCORES(s)                                                                            \
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < SCORES; ++j)                       \
    s[i][j] = WITH_MASK(s[i][j] * scale, first + ROW(i), key0 + COLUMN(j));                         \
  if (key0 + BN > (causal ? min(keys, first + 1) : keys))                                           \
    UNROLL for (int i = 0; i < TM; ++i) {                                                           \
      const int last = causal ? min(keys, first + ROW(i) + 1) : keys;                               \
      UNROLL for (int j = 0; j < SCORES; ++j) s[i][j] = key0 + COLUMN(j) < last ? s[i][j] : -INFINITY; \
    }

#if DROPOUT
// Sets to 0 the weights that are dropped.
#define DROP(s)                                                                                     \
  UNROLL for (int i = 0; i < TM; ++i) {                                                             \
    UNROLL for (int j = 0; j < SCORES; j += 4) {                                                    \
      const uint kept_ = kept_of_4(p.scores, all, first + ROW(i), key0 + COLUMN(j));                \
      UNROLL for (int u = 0; u < 4; ++u) s[i][j + u] = kept_ >> (4 * u) & 1 ? s[i][j + u] : 0.0f;   \
    }                                                                                               \
  }
#else
#define DROP(s)
#endif
#endif
