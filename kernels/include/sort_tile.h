// A tile of TILE keys in the registers of a work-group, ITEMS consecutive ones to a work-item, sorted by
// digits of 4 bits in local memory. Each key has its origin beside it: its initial place in the tile.
// GROUP work-items, a power of two; ITEMS at most 16.
#ifndef OCLTENSOR_SORT_TILE_H
#define OCLTENSOR_SORT_TILE_H
#include "sort_key.h"

#define TILE (GROUP * ITEMS)
// In front of __kernel, because the code that rewrites structure parameters for some drivers searches for
// that word.
#define TILE_GROUP __attribute__((reqd_work_group_size(GROUP, 1, 1)))
// The place of entry i in local memory, such that consecutive entries of one item, and of adjacent items, are
// in different banks. CONSECUTIVE is the place of an item's entry k; ACROSS of entry k if the items' entries
// k are adjacent. Both are sums, whose constant part a compiler can separate.
#define WORD_PLACE(i) ((i) + ((i) >> 5))
#define KEY_PLACE(i) ((i) + ((i) >> (WIDTH == 64 ? 4 : 5)))
#define ORIGIN_PLACE(i) ((i) + ((i) >> 6) * 2)
#define CONSECUTIVE(PLACE, k) (PLACE(id * ITEMS) + (k))
#if GROUP % 64 == 0
#define ACROSS(PLACE, k) (PLACE((k) * GROUP) + PLACE(id))
#else
#define ACROSS(PLACE, k) PLACE((k) * GROUP + id)
#endif
#define COUNTERS 8  // per item, of two digits each
#define SCAN_MEMORY __local uint sums[2 * GROUP];
#define KEY_MEMORY __local Key keys[KEY_PLACE(TILE) + 1];
#define TILE_MEMORY                                     \
  SCAN_MEMORY KEY_MEMORY                                \
  __local ushort origins[ORIGIN_PLACE(TILE) + 1];       \
  __local uint counters[WORD_PLACE(COUNTERS * GROUP) + 1], again[1];

// The sum of v over the items before this one; *total becomes the sum over all. There must be a barrier
// between two scans.
INLINE uint scan(__local uint *sums, uint v, uint id, uint *total) {
  uint sum = v, at = 0;
  UNROLL for (uint step = 1; step < GROUP; step *= 4) {
    sums[at + id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (uint k = 1; k < 4; ++k)
      if (k * step < GROUP && id >= k * step) sum += sums[at + id - k * step];
    at = GROUP - at;
  }
  sums[at + id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  *total = sums[at + GROUP - 1];
  return sum - v;
}

// Reads key[0 .. ITEMS) as KEY_AT(i), adjacent items from adjacent places; places from `count` of the tile on
// get the largest key.
#define READ_TILE(key, count, KEY_AT)                                                        \
  UNROLL for (int k = 0; k < ITEMS; ++k) {                                                   \
    const uint i = k * GROUP + id;                                                           \
    key[k] = ALL_BITS;                                                                       \
    if (i < (count)) key[k] = KEY_AT(i);                                                     \
  }
// Redistributes these keys through local memory: each item gets ITEMS consecutive ones.
#define TURN_TILE(key)                                                        \
  UNROLL for (int k = 0; k < ITEMS; ++k) keys[ACROSS(KEY_PLACE, k)] = key[k]; \
  barrier(CLK_LOCAL_MEM_FENCE);                                               \
  UNROLL for (int k = 0; k < ITEMS; ++k) key[k] = keys[CONSECUTIVE(KEY_PLACE, k)];

// Replaces each counter by the sum over all counters before it. An item's counter of digit d is half d / 8 of
// word d % 8: the low halves of all words come before the high ones.
INLINE void sum_counters(__local uint *counters, __local uint *sums, uint id) {
  uint own[COUNTERS], sum = 0, total;
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (int w = 0; w < COUNTERS; ++w) {
    own[w] = counters[WORD_PLACE(id * COUNTERS) + w];
    sum += own[w];
  }
  sum = scan(sums, sum, id, &total);
  sum += total << 16;
  UNROLL for (int w = 0; w < COUNTERS; ++w) {
    counters[WORD_PLACE(id * COUNTERS) + w] = sum;
    sum += own[w];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// A stable pass over the tile by the digits DIGIT(k, shift), of 4 bits, of the item's entries. Leaves keys
// and origins in local memory, too. The shift is read back from memory, so that compilers recompute digits
// where they need them: otherwise the registers for the digits of 16 entries, and not the local memory, would
// limit how many work-groups run on a multiprocessor.
#define COUNTER(digit) counters[ACROSS(WORD_PLACE, (digit) & 7)]
#define HALF(digit) (((digit) & 8) * 2)
#define SORT_PASS(DIGIT, first_shift)                                                        \
  {                                                                                          \
    uint place[ITEMS];                                                                       \
    if (id == 0) again[0] = first_shift;                                                     \
    UNROLL for (int w = 0; w < COUNTERS; ++w) COUNTER(w) = 0;                                \
    UNROLL for (int k = 0; k < ITEMS; ++k) {                                                 \
      const uint digit = (uint)(DIGIT(k, first_shift)), count = COUNTER(digit);              \
      place[k] = count >> HALF(digit) & 0xffff;                                              \
      COUNTER(digit) = count + (1u << HALF(digit));                                          \
    }                                                                                        \
    sum_counters(counters, sums, id);                                                        \
    const uint same_shift = again[0];                                                        \
    UNROLL for (int k = 0; k < ITEMS; ++k) {                                                 \
      const uint digit = (uint)(DIGIT(k, same_shift));                                       \
      place[k] += COUNTER(digit) >> HALF(digit) & 0xffff;                                    \
      keys[KEY_PLACE(place[k])] = key[k];                                                    \
      origins[ORIGIN_PLACE(place[k])] = (ushort)origin[k];                                   \
    }                                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                            \
    UNROLL for (int k = 0; k < ITEMS; ++k) {                                                 \
      key[k] = keys[CONSECUTIVE(KEY_PLACE, k)];                                              \
      origin[k] = origins[CONSECUTIVE(ORIGIN_PLACE, k)];                                     \
    }                                                                                        \
  }

// Counting digits of 8 bits in local memory: an item adds a run of equal digits at once.
typedef struct {
  uint digit, count;
} Run;
INLINE Run count_digit(__local uint *counts, Run run, uint digit) {
  if (run.count > 0 && run.digit != digit) {
    atomic_add(counts + run.digit, run.count);
    run.count = 0;
  }
  run.digit = digit;
  ++run.count;
  return run;
}
INLINE void end_run(__local uint *counts, Run run) {
  if (run.count > 0) atomic_add(counts + run.digit, run.count);
}

// The bits of the element with this key at `position` of the row at `raw`.
INLINE Key element_of(Key key, __global const WORD *raw, ulong position) {
  return has_one_element(key) ? bits_of(key) : (Key)raw[position];
}
#endif
