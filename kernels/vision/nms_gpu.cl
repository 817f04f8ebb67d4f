// Rounds of nms for GPUs, of up to 64 * WORDS boxes. A mask word has a bit for each of 64 boxes that a box of
// the round suppresses; word w of all boxes is stored together, for words that have boxes behind the own.
//   masks   a work-item computes a word
//   walk    one work-group goes through the round's boxes, 64 at a time, and lists those that it keeps
//   sweep   a work-item removes one box behind the round if a kept one suppresses it
#include "nms.h"
#define ROUND (64 * WORDS)
#define PARTS 8  // shares of 64 rows whose words are joined at a time

__kernel void masks(__global void *mask_base, ulong mask_offset, __global const void *removed_base,
                    ulong removed_offset, __global const void *rows_base, ulong rows_offset,
                    const NmsParams p) {
  __global const T *rows = (__global const T *)((__global const char *)rows_base + rows_offset);
  const T threshold = FROM_BITS(A, p.threshold);
  FOR_EACH(i, p.pieces, p.per_item) {
    const long word = i / ROUND, own = p.first + i - word * ROUND;
    const long begin = p.first + 64 * word, low = max(own + 1, begin), high = min((long)p.end, begin + 64);
    if (own >= p.end || low >= high || AT_CONST(u8, removed_base, removed_offset)[own]) continue;
    const Box box = box_of(rows, own, p);
    ulong bits = 0;
    for (long j = low; j < high; ++j)
      if (suppresses(box, box_of(rows, j, p), threshold)) bits |= 1UL << ((j - p.first) % 64);
    AT(u64, mask_base, mask_offset)[i] = bits;
  }
}

// The boxes of 64 that are kept if those of `gone` are not: a box that is kept removes others behind it.
INLINE ulong settle(ulong gone, __local const ulong *own) {
  ulong keep = 0;
  for (int b = 0; b < 64; ++b) {
    const ulong bit = 1UL << b;
    if (gone & bit) continue;
    keep |= bit;
    gone |= own[b];
  }
  return keep;
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void walk(__global void *kept_base, ulong kept_offset, __global void *list_base, ulong list_offset,
                   __global void *counts_base, ulong counts_offset, __global const void *removed_base,
                   ulong removed_offset, __global const void *mask_base, ulong mask_offset,
                   __global const void *order_base, ulong order_offset, const NmsParams p) {
  __global const ulong *mask = AT_CONST(u64, mask_base, mask_offset);
  __global long *counts = AT(i64, counts_base, counts_offset);
  __local uint gone[2 * WORDS];  // bits of removed boxes
  __local ulong own[64], keep_of_word;
  const int id = get_local_id(0), size = p.end - p.first;
  for (int i = id; i < 2 * WORDS; i += ITEMS) gone[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = id; i < ROUND; i += ITEMS)
    if (i >= size || AT_CONST(u8, removed_base, removed_offset)[p.first + i])
      atomic_or(&gone[i / 32], 1u << i % 32);
  long total = counts[0], listed = 0;
  for (int word = 0; word * 64 < size; ++word) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = id; b < 64; b += ITEMS) own[b] = mask[(word * ROUND) + word * 64 + b];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0) keep_of_word = settle(gone[2 * word] | (ulong)gone[2 * word + 1] << 32, own);
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong keep = keep_of_word;
    for (int b = id; b < 64; b += ITEMS) {
      if ((keep >> b & 1) == 0) continue;
      const long rank = popcount(keep & ((1UL << b) - 1)), i = p.first + word * 64 + b;
      AT(i64, list_base, list_offset)[listed + rank] = i;
      AT(i64, kept_base, kept_offset)[total + rank] = AT_CONST(i64, order_base, order_offset)[i];
    }
    listed += popcount(keep);
    total += popcount(keep);
    for (int i = id; i < WORDS * PARTS; i += ITEMS) {
      const int behind = i % WORDS;
      if (behind <= word || behind * 64 >= size) continue;
      ulong bits = 0;
      for (int b = i / WORDS; b < 64; b += PARTS)
        if (keep >> b & 1) bits |= mask[behind * ROUND + word * 64 + b];
      atomic_or(&gone[2 * behind], (uint)bits);
      atomic_or(&gone[2 * behind + 1], (uint)(bits >> 32));
    }
  }
  barrier(CLK_GLOBAL_MEM_FENCE);  // all have read the counts
  if (id == 0) {
    counts[0] = total;
    counts[1] = listed;
  }
}

__kernel void sweep(__global void *removed_base, ulong removed_offset, __global const void *rows_base,
                    ulong rows_offset, __global const void *list_base, ulong list_offset,
                    __global const void *counts_base, ulong counts_offset, const NmsParams p) {
  __global const T *rows = (__global const T *)((__global const char *)rows_base + rows_offset);
  __global const long *list = AT_CONST(i64, list_base, list_offset);
  __global uchar *removed = AT(u8, removed_base, removed_offset);
  const long listed = AT_CONST(i64, counts_base, counts_offset)[1];
  const T threshold = FROM_BITS(A, p.threshold);
  FOR_EACH(i, p.pieces, p.per_item) {
    const long own = p.end + i;
    if (removed[own]) continue;
    const Box box = box_of(rows, own, p);
    for (long k = 0; k < listed; ++k) {
      if (!suppresses(box_of(rows, list[k], p), box, threshold)) continue;
      removed[own] = 1;
      break;
    }
  }
}
