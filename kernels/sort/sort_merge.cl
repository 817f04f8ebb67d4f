// Merge sort of rows of entries (sort_entries.h), for CPU drivers.
//   sort_chunks   entries of each chunk, sorted by one work-item: 16 by exchanges, then merges between two
//                 buffers
//   merge         merges pairs of sorted runs; a work-item finds and writes its own segment of the result
//   unpack        values and positions of the first entries of each row
#include "range.h"
#include "sort_entries.h"

INLINE void sort16(__global E *to, __global const WORD *in, long first, int count) {
  E e[16];
  UNROLL for (int k = 0; k < 16; ++k) {
    e[k] = LARGEST;
    if (k < count) e[k] = ENTRY(key_of(in[first + k]), first + k);
  }
  exchange16(e);
  UNROLL for (int k = 0; k < 16; ++k)
    if (k < count) to[first + k] = e[k];
}

ONE_ITEM __kernel void sort_chunks(__global void *entry_base, ulong entry_offset, __global void *spare_base,
                                   ulong spare_offset, __global const void *in_base, ulong in_offset,
                                   const SortParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / p.row_pieces, low = (i - row * p.row_pieces) * p.piece,
               high = min((long)p.length, low + p.piece);
    __global E *entries = AT_BYTES(E, entry_base, entry_offset) + row * p.length;
    __global E *spare = AT_BYTES(E, spare_base, spare_offset) + row * p.length;
    __global const WORD *in = AT_BYTES(const WORD, in_base, in_offset) + row * p.length;
    for (long k = low; k < high; k += 16) sort16(entries, in, k, min(16L, high - k));
    __global E *from = merge_runs(entries, spare, low, high);
    if (from != entries)
      for (long k = low; k < high; ++k) entries[k] = from[k];
  }
}

ONE_ITEM __kernel void merge(__global void *to_base, ulong to_offset, __global const void *from_base,
                             ulong from_offset, const SortParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / p.row_pieces, at = (i - row * p.row_pieces) * p.piece,
               stop = min((long)p.entries, at + p.piece);
    __global E *to = AT_BYTES(E, to_base, to_offset) + row * p.entries;
    __global const E *from = AT_BYTES(const E, from_base, from_offset) + row * p.entries;
    const long first = at / (2 * p.run) * (2 * p.run);
    const long middle = min((long)p.entries, first + p.run), end = min((long)p.entries, first + 2 * p.run);
    // How many of the left run come before `at`.
    const long before = at - first;
    long low = max(0L, before - (end - middle)), high = min(before, middle - first);
    while (low < high) {
      const long k = (low + high) / 2;
      if (LESS(from[first + k], from[middle + before - 1 - k])) low = k + 1;
      else high = k;
    }
    merge_into(to, from, first + low, middle, middle + before - low, end, at, stop);
  }
}

ONE_ITEM __kernel void unpack(__global void *value_base, ulong value_offset, __global void *index_base,
                           ulong index_offset, __global const void *entry_base, ulong entry_offset,
                           __global const void *in_base, ulong in_offset, const SortParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / p.kept, k = i - row * p.kept;
    const long at = POSITION((AT_BYTES(const E, entry_base, entry_offset))[row * p.entries + k]);
#if VALUES
    AT_BYTES(WORD, value_base, value_offset)[i] =
        AT_BYTES(const WORD, in_base, in_offset)[row * p.length + at];
#endif
    AT(i64, index_base, index_offset)[i] = at;
  }
}
