// searchsorted: the place in a sorted row of n where each of `count` values belongs, by bisection. Each row
// of the sequence is for `per_row` values; 0: one row is for all values. COMPARE: >= finds the first place, >
// the last. SORTER: the sequence is in order through indices. A, OUT
#include "types.h"
#include "range.h"

GROUP __kernel void search(__global const void *sorted_base, ulong sorted_offset,
                           __global const void *sorter_base, ulong sorter_offset,
                           __global const void *value_base, ulong value_offset, __global void *out_base,
                           ulong out_offset, long count, long n, long per_row, long per_item) {
  __global const STYPE(A) *values = AT_CONST(A, value_base, value_offset);
  FOR_EACH(i, count, per_item) {
    const long row = per_row > 0 ? i / per_row * n : 0;
    __global const STYPE(A) *sorted = AT_CONST(A, sorted_base, sorted_offset) + row;
    const CTYPE(A) wanted = LOAD(A, values, i);
    long low = 0, high = n;
    while (low < high) {
      const long middle = low + (high - low) / 2;
#if SORTER
      const long place = (AT_CONST(i64, sorter_base, sorter_offset) + row)[middle];
#else
      const long place = middle;
#endif
      if (LOAD(A, sorted, place) COMPARE wanted)
        high = middle;
      else
        low = middle + 1;
    }
    STORE(OUT, AT(OUT, out_base, out_offset), i, (CTYPE(OUT))low);
  }
}
