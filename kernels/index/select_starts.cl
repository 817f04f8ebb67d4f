// The number of chosen elements before each chunk (select.cl), and behind the last chunk that of all: a
// work-group of ITEMS adds up the counts.
#include "types.h"

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void add_counts(__global void *start_base, ulong start_offset, __global const void *count_base,
                         ulong count_offset, long chunks) {
  __local long sums[ITEMS];
  __global const int *count = AT_CONST(i32, count_base, count_offset);
  __global long *start = AT(i64, start_base, start_offset);
  const int item = get_local_id(0);
  const long each = (chunks + ITEMS - 1) / ITEMS;
  const long first = min(item * each, chunks), end = min(first + each, chunks);
  long sum = 0;
  for (long c = first; c < end; ++c) sum += count[c];
  sums[item] = sum;
  for (int step = 1; step < ITEMS; step *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const long before = item >= step ? sums[item - step] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[item] += before;
  }
  long at = sums[item] - sum;
  for (long c = first; c < end; ++c) {
    start[c] = at;
    at += count[c];
  }
  if (item == ITEMS - 1) start[chunks] = at;
}
