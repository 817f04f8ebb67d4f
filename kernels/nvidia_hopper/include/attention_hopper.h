// What attention forward and backward on Hopper's matrix units share: the order of tiles, tensor maps,
// dropout, results. Uses TYPE f16 or bf16, DEPTH and CAUSAL; MASK (M its type) and DROPOUT as in attention.h,
// MASK_TILES as in attention_mask.h.
#ifndef OCLTENSOR_ATTENTION_HOPPER_H
#define OCLTENSOR_ATTENTION_HOPPER_H
#include "attention_hopper_params.h"
#include "hopper.h"
#define COMPUTE f32
typedef float T;
#include "attention_lanes.h"
#include "attention_order.h"

#define ELEMENT CAT(ELEMENT_, TYPE)
#define PACK CAT(pack_, TYPE)
#define TYPES CAT(TYPES_, TYPE)
#define TYPES_f16 "f32.f16.f16"
#define TYPES_bf16 "f32.bf16.bf16"

// The number of this work-group's tile in `round`. By the counter, which begins at 0: a group takes the next
// one when it is about to end one, so that all end at about the same time. Without a counter in turn; causal
// tiles, of which the longest come first, every other round backwards.
INLINE int tile_number(__global uint *counter, int round) {
  const int group = get_group_id(0), groups = get_num_groups(0);
  if (counter != 0 && round > 0) return groups + (int)atomic_inc(counter);
  return round * groups + (CAUSAL && (round & 1) ? groups - 1 - group : group);
}
// The item that loads leaves its tile for those that multiply, in `next_tile` (__local int4), before it
// arrives at the barrier `full`; after the last one it leaves that there is none. They take it after waiting
// there.
#define PUBLISH_TILE(t, exists, full)                           \
  next_tile = (int4)((t).batch, (t).head, (t).first, (exists)); \
  if (!(exists)) {                                              \
    barrier_arrive(full);                                       \
    break;                                                      \
  }
#define TAKE_TILE(t)                                        \
  const int4 taken_ = *(volatile __local int4 *)&next_tile; \
  if (!taken_.w) break;                                     \
  const Tile t = {taken_.x, taken_.y, taken_.z};

#define NEXT_SLOT(slot, phase) \
  if (++slot == STAGES) {      \
    slot = 0;                  \
    phase ^= 1;                \
  }
// Divides the registers of a work-group's items anew, at its start: `change` dec for the warpgroup that
// loads, inc for those that multiply.
#define SET_REGISTERS(change, count) \
  asm volatile("//@ setmaxnreg." #change ".sync.aligned.u32 " TEXT_OF(count) ";\n" ::: "memory");
#define TEXT_OF(number) #number
#define RELEASE(bar) \
  if (lane == 0) barrier_arrive(bar);
#define MAP_OF(x, words, map, base, offset, length, rows) \
  WIDE_MAP_OF(x, words, map, base, offset, p.depth, length, rows)
#define WIDE_MAP_OF(x, words, map, base, offset, width, length, rows)                                \
  MAKE_MAP_4(ELEMENT, words, map, (__global const char *)(base) + (offset), width, length,           \
             (x).heads == 0 ? 1 : (x).heads, (x).batches == 0 ? 1 : (x).batches, (x).stride.row * 2, \
             (x).stride.head * 2, (x).stride.batch * 2, 64, rows)

// Stores row h (0, or 1: 8 rows further) of this item's accumulators d, times `factor`: the first `left` of
// `columns` elements, 8 of every fourth block by each of the four items of a row.
#define PACKED(d, factor, j) PACK(d[(j) * 4 + h * 2] * factor, d[(j) * 4 + h * 2 + 1] * factor)
#define STORE_COLUMNS(d, factor, columns, left, to, inside)                                               \
  UNROLL for (int j = 0; j < (columns) / 8; j += 4) {                                                     \
    const uint4 all_ = fragment_of_pairs(0, (uint4)(PACKED(d, factor, j), PACKED(d, factor, j + 1),       \
                                                    PACKED(d, factor, j + 2), PACKED(d, factor, j + 3))); \
    const int column = (j + quarter) * 8;                                                                 \
    if ((inside) && column < (left)) *(__global uint4 *)((to) + column) = all_;                           \
  }
#define STORE_ROW(d, factor, to, inside) STORE_COLUMNS(d, factor, DEPTH, (int)p.depth, to, inside)
// What an item has of the scores of block `n`: columns 8 j + 2 quarter and the next in s, for all j, of rows
// `row` (numbers 4 j, 4 j + 1) and row + 8 (4 j + 2, 4 j + 3).

#include "attention_mask.h"

#if DROPOUT
// Which elements of block n are kept, a word for eight fragments. `draw` is kept_across_keys or
// kept_along_keys, `step` the counters from a fragment to the fourth after it, `first` the lane's first one
// in block 0. Drawn while the block's products run.
#define DRAW_FOUR(draw, first, step, number) \
  draw(tiles, p.scores, (first) + (ulong)(uint)(number) * (ulong)(uint)(step))
#define DRAW_BLOCK(draw, first, step, n)                                            \
  uint kept_ones[BN / 64];                                                          \
  UNROLL for (int i = 0; i < BN / 64; ++i)                                          \
    kept_ones[i] =                                                                  \
        permute_bytes(DRAW_FOUR(draw, first, step, (n) * (BN / 32) + i * 2),        \
                      DRAW_FOUR(draw, first, step, (n) * (BN / 32) + i * 2 + 1), 0x5410);
#define ALL_KEPT(pair, j, at, h) ((pair) & KEPT_PAIR(kept_ones[(j) / 8], j, at(j, h)))
#endif
#endif
