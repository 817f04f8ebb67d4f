// The smallest of the most frequent elements of sorted rows, and its last position; a NaN equals no other
// element. On CPU drivers a work-item takes a row, on GPUs a work-group, each of whose items takes the runs
// that begin in its slice. Elements are read as in[first + i]: loops over a pointer to the row, or over
// places in all rows, end Intel's compiler (IGC 1.0.12504).
#include "range.h"
#include "sort_key.h"
#include "order_statistic_params.h"

#define IN AT_BYTES(const WORD, in_base, in_offset)
#define KEY(i) key_of(in[first + (i)])
#if ELEMENT == FLOAT
#define ARE_EQUAL(i, k) (KEY(i) == KEY(k) && KEY(i) != ALL_BITS)
#else
#define ARE_EQUAL(i, k) (KEY(i) == KEY(k))
#endif
#if CPU_STYLE
#define ID 0
#define ITEMS 1
#define FOR_ROWS FOR_EACH(row, p.pieces, p.per_item)
#else
#define ID (long)get_local_id(0)
#define ITEMS (long)get_local_size(0)
#define FOR_ROWS for (long row = get_group_id(0), once = 1; once; once = 0)
#endif

GROUP __kernel void mode(__global void *value_base, ulong value_offset, __global void *index_base,
                         ulong index_offset, __global const void *in_base, ulong in_offset,
                         __global const void *position_base, ulong position_offset,
                         const OrderStatisticParams p) {
#if !CPU_STYLE
  __local long lengths[GROUP_SIZE], lasts[GROUP_SIZE];
#endif
  FOR_ROWS {
    __global const WORD *in = IN;
    const long first = row * p.length;
    const long slice = (p.length + ITEMS - 1) / ITEMS, high = min((long)p.length, (ID + 1) * slice);
    long begin = ID * slice, length = 0, last = 0;
    while (begin > 0 && begin < high && ARE_EQUAL(begin - 1, begin)) ++begin;
    while (begin < high) {
      long end = begin + 1;
      while (end < p.length && ARE_EQUAL(begin, end)) ++end;
      if (end - begin > length) {
        length = end - begin;
        last = end - 1;
      }
      begin = end;
    }
#if !CPU_STYLE
    lengths[ID] = length;
    lasts[ID] = last;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (ID == 0)
      for (long k = 1; k < ITEMS; ++k)
        if (lengths[k] > length) {
          length = lengths[k];
          last = lasts[k];
        }
#endif
    if (ID == 0) {
      AT_BYTES(WORD, value_base, value_offset)[row] = in[first + last];
      AT(i64, index_base, index_offset)[row] =
          AT_CONST(i64, position_base, position_offset)[first + last];
    }
  }
}
