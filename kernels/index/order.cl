// Stable radix sort of keys for CPU drivers: entries are key << 32 | position, and each pass sorts them by
// one digit of their keys, from the lowest on.
//   count_digits  how often a digit occurs in each piece, counts[digit][piece]
//   sum_counts    turns counts into the places where the pieces' entries go
//   move          moves entries to their places
#include "types.h"
#include "range.h"
#include "order_params.h"
#define DIGITS (1 << 11)  // at most

INLINE ulong entry_at(__global const ulong *from, long i, const bool first, ulong limit) {
  return first ? min(from[i], limit) << 32 | (ulong)i : from[i];
}

INLINE void count_piece(__global const ulong *from, uint *counts, long low, long high, const bool first,
                        const OrderParams p) {
  const uint mask = (1u << p.bits) - 1;
  for (long i = low; i < high; ++i)
    ++counts[(uint)(entry_at(from, i, first, p.limit) >> (32 + p.shift)) & mask];
}

ONE_ITEM __kernel void count_digits(__global void *count_base, ulong count_offset,
                                    __global const void *from_base, ulong from_offset, const OrderParams p) {
  __global uint *to = (__global uint *)AT(i32, count_base, count_offset);
  __global const ulong *from = (__global const ulong *)AT_CONST(i64, from_base, from_offset);
  FOR_EACH(i, p.pieces, p.per_item) {
    uint counts[DIGITS];
    for (int d = 0; d < 1 << p.bits; ++d) counts[d] = 0;
    const long low = i * p.piece, high = min((long)p.count, low + p.piece);
    if (p.first) count_piece(from, counts, low, high, true, p);
    else count_piece(from, counts, low, high, false, p);
    for (int d = 0; d < 1 << p.bits; ++d) to[d * p.pieces + i] = counts[d];
  }
}

ONE_ITEM __kernel void sum_counts(__global void *count_base, ulong count_offset, const OrderParams p) {
  __global uint *counts = (__global uint *)AT(i32, count_base, count_offset);
  uint sum = 0;
  ROLLED for (long k = 0; k < p.pieces << p.bits; ++k) {
    const uint own = counts[k];
    counts[k] = sum;
    sum += own;
  }
}

INLINE void move_piece(__global ulong *to, __global const ulong *from, uint *places, long low, long high,
                       const bool first, const OrderParams p) {
  const uint mask = (1u << p.bits) - 1;
  for (long i = low; i < high; ++i) {
    const ulong entry = entry_at(from, i, first, p.limit);
    to[places[(uint)(entry >> (32 + p.shift)) & mask]++] = entry;
  }
}

ONE_ITEM __kernel void move(__global void *to_base, ulong to_offset, __global const void *count_base,
                            ulong count_offset, __global const void *from_base, ulong from_offset,
                            const OrderParams p) {
  __global ulong *to = (__global ulong *)AT(i64, to_base, to_offset);
  __global const uint *starts = (__global const uint *)AT_CONST(i32, count_base, count_offset);
  __global const ulong *from = (__global const ulong *)AT_CONST(i64, from_base, from_offset);
  FOR_EACH(i, p.pieces, p.per_item) {
    uint places[DIGITS];
    for (int d = 0; d < 1 << p.bits; ++d) places[d] = starts[d * p.pieces + i];
    const long low = i * p.piece, high = min((long)p.count, low + p.piece);
    if (p.first) move_piece(to, from, places, low, high, true, p);
    else move_piece(to, from, places, low, high, false, p);
  }
}
