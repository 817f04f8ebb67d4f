// What attention forward and backward on Hopper's matrix units share: the order of tiles, tensor maps,
// results. Uses TYPE f16 or bf16, DEPTH and CAUSAL.
#ifndef OCLTENSOR_ATTENTION_HOPPER_H
#define OCLTENSOR_ATTENTION_HOPPER_H
#include "attention_hopper_params.h"
#include "hopper.h"

#define ELEMENT CAT(ELEMENT_, TYPE)
#define PACK CAT(pack_, TYPE)
#define TYPES CAT(TYPES_, TYPE)
#define TYPES_f16 "f32.f16.f16"
#define TYPES_bf16 "f32.bf16.bf16"

typedef struct {
  int batch, head, first;  // the first row
} Tile;

// This work-group's tile in `round`. Causal: the longest tiles come first, and every other round is reversed,
// so that all groups have about the same work.
INLINE int turn(int round) {
  const int group = get_group_id(0), groups = get_num_groups(0);
  return round * groups + (CAUSAL && (round & 1) ? groups - 1 - group : group);
}
// Tile `index`. Heads are taken in bundles; in each, the tiles of the first rows come first, or of the last.
INLINE Tile tile_at(int index, int bundle, int row_tiles, int heads, int all_heads, bool last_first,
                    int rows) {
  const int span = bundle * row_tiles, start = index / span * bundle, in_bundle = index % span;
  const int here = min(bundle, all_heads - start), head = start + in_bundle % here, down = in_bundle / here;
  Tile t;
  t.batch = head / heads;
  t.head = head % heads;
  t.first = (last_first ? row_tiles - 1 - down : down) * rows;
  return t;
}

#define NEXT_SLOT(slot, phase) \
  if (++slot == STAGES) {      \
    slot = 0;                  \
    phase ^= 1;                \
  }
#define RELEASE(bar) \
  if (lane == 0) barrier_arrive(bar);
#define MAP_OF(x, words, map, base, offset, length, rows)                                            \
  MAKE_MAP_4(ELEMENT, words, map, (__global const char *)(base) + (offset), p.depth, length,         \
             (x).heads == 0 ? 1 : (x).heads, (x).batches == 0 ? 1 : (x).batches, (x).stride.row * 2, \
             (x).stride.head * 2, (x).stride.batch * 2, 64, rows)

// Stores row h (0, or 1: 8 rows further) of this item's accumulators d, times `factor`. The four items of a
// row exchange 4 x 4 pairs, so that each has 8 adjacent columns of every fourth block.
#define PAIR(d, factor, j) PACK(d[(j) * 4 + h * 2] * factor, d[(j) * 4 + h * 2 + 1] * factor)
#define STORE_ROW(d, factor, to, inside)                                                                 \
  UNROLL for (int j = 0; j < DEPTH / 8; j += 4) {                                                        \
    uint v0 = PAIR(d, factor, j), v1 = PAIR(d, factor, j + 1), v2 = PAIR(d, factor, j + 2),              \
         v3 = PAIR(d, factor, j + 3);                                                                    \
    uint x = from_neighbour(quarter & 1 ? v0 : v1, 1), y = from_neighbour(quarter & 1 ? v2 : v3, 1);     \
    if (quarter & 1) {                                                                                   \
      v0 = x;                                                                                            \
      v2 = y;                                                                                            \
    } else {                                                                                             \
      v1 = x;                                                                                            \
      v3 = y;                                                                                            \
    }                                                                                                    \
    x = from_neighbour(quarter & 2 ? v0 : v2, 2), y = from_neighbour(quarter & 2 ? v1 : v3, 2);          \
    if (quarter & 2) {                                                                                   \
      v0 = x;                                                                                            \
      v1 = y;                                                                                            \
    } else {                                                                                             \
      v2 = x;                                                                                            \
      v3 = y;                                                                                            \
    }                                                                                                    \
    const int column = (j + quarter) * 8;                                                                \
    if ((inside) && column < (int)p.depth) *(__global uint4 *)((to) + column) = (uint4)(v0, v1, v2, v3); \
  }
// Masks the keys from end0 and end1 on in block `n` of BN keys. This item holds columns 8 j + 2 quarter
// and the next in s, for all j, of rows `row` (numbers 4 j, 4 j + 1) and row + 8.
#define MASK_ROWS(n)                                                                        \
  {                                                                                         \
    const int left0 = end0 - (n) * BN - quarter * 2, left1 = end1 - (n) * BN - quarter * 2; \
    UNROLL for (int j = 0; j < BN / 8; ++j) {                                               \
      s[j * 4] = j * 8 < left0 ? s[j * 4] : -INFINITY;                                      \
      s[j * 4 + 1] = j * 8 + 1 < left0 ? s[j * 4 + 1] : -INFINITY;                          \
      s[j * 4 + 2] = j * 8 < left1 ? s[j * 4 + 2] : -INFINITY;                              \
      s[j * 4 + 3] = j * 8 + 1 < left1 ? s[j * 4 + 3] : -INFINITY;                          \
    }                                                                                       \
  }
#endif
