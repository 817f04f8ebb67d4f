// The first `kept` entries (sort_entries.h) of each piece of a row, in order, for CPU drivers and entries of
// 8 bytes: entries smaller than the kept-th smallest so far are collected in a buffer; when it is full, the
// smallest of it are kept. A piece with fewer entries is padded with LARGEST.
#include "range.h"
#include "sort_entries.h"

KEY_FUNCTION(keys_of, uint16)

// A number that exactly `kept` of `count` different entries (count > kept) are less than: found bit by bit,
// from the highest bit in which the entries differ. The buffer is filled with LARGEST to a multiple of 8.
INLINE ulong limit_of(__global const ulong *entries, long count, long kept) {
  ulong8 every = (ulong8)(ULONG_MAX), some = (ulong8)(0);
  const long vectors = (count + 7) / 8;
  for (long i = 0; i < vectors; ++i) {
    const ulong8 e = vload8(i, entries);
    every &= e;
    some |= e;
  }
  const ulong4 every4 = every.lo & every.hi, some4 = some.lo | some.hi;
  const ulong all = every4.x & every4.y & every4.z & every4.w, any_ = some4.x | some4.y | some4.z | some4.w;
  int bit = 63 - (int)clz(all ^ any_);
  ulong low = bit == 63 ? 0 : all >> (bit + 1) << (bit + 1);
  for (; bit >= 0; --bit) {
    const ulong trial = low | 1ul << bit;
    long8 less = (long8)(0);
    for (long i = 0; i < vectors; ++i) less -= vload8(i, entries) < (ulong8)(trial);
    const long4 less4 = less.lo + less.hi;
    const long found = less4.x + less4.y + less4.z + less4.w;
    if (found == kept) return trial;
    if (found < kept) low = trial;
  }
  return low + 1;
}

INLINE void fill_up(__global ulong *entries, long count, long multiple) {
  ROLLED for (; count % multiple != 0; ++count) entries[count] = LARGEST;
}

// Keeps the `kept` smallest entries; returns the key that further entries must be below.
INLINE uint keep_best(__global ulong *entries, long count, long kept) {
  fill_up(entries, count, 8);
  const ulong limit = limit_of(entries, count, kept);
  ulong last = 0;
  long to = 0;
  for (long i = 0; i < count; ++i) {
    const ulong e = entries[i];
    const bool stays = e < limit;
    entries[to] = e;
    to += stays;
    last = stays ? max(last, e) : last;
  }
  return last >> 32;
}

ONE_ITEM __kernel void select_best(__global void *entry_base, ulong entry_offset, __global void *spare_base,
                                   ulong spare_offset, __global const void *in_base, ulong in_offset,
                                   const SortParams p) {
  __global ulong *best = AT_BYTES(ulong, spare_base, spare_offset) + get_global_id(0) * 2 * p.room;
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / p.row_pieces, piece = i - row * p.row_pieces, low = piece * p.piece,
               high = min((long)p.length, low + p.piece);
    __global const WORD *in = AT_BYTES(const WORD, in_base, in_offset) + row * p.length;
    long count = 0, at = low;
    uint limit = 0xffffffffu;
    bool full = false;  // `limit` is valid; before, entries with the highest key must pass, too
    for (; at < high; at += 16) {
      if (count + 16 > p.room) {
        limit = keep_best(best, count, p.kept);
        count = p.kept;
        full = true;
      }
      uint keys[16];
      const int n = min(16L, high - at);
      if (n == 16) {
        const uint16 k = keys_of(convert_uint16(vload16(0, in + at)));
        if (full && !any(k < (uint16)(limit))) continue;
        vstore16(k, 0, keys);
      } else {
        ROLLED for (int k = 0; k < n; ++k) keys[k] = key_of(in[at + k]);
      }
      ROLLED for (int k = 0; k < n; ++k) {
        best[count] = ENTRY(keys[k], at + k);
        count += !full || keys[k] < limit;
      }
    }
    if (count > p.kept) {
      keep_best(best, count, p.kept);
      count = p.kept;
    }
    fill_up(best, count, 16);
    for (long k = 0; k < count; k += 16) {
      ulong e[16];
      UNROLL for (int j = 0; j < 16; ++j) e[j] = best[k + j];
      exchange16(e);
      UNROLL for (int j = 0; j < 16; ++j) best[k + j] = e[j];
    }
    __global const ulong *sorted = merge_runs(best, best + p.room, 0, count);
    __global ulong *to = AT_BYTES(ulong, entry_base, entry_offset) + i * p.kept;
    for (long k = 0; k < p.kept; ++k) to[k] = k < count ? sorted[k] : LARGEST;
  }
}
