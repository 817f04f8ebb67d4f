// Applies row interchanges to matrices, for GPUs: swaps row first + i with row pivots[i] - 1, in order, or in
// reverse order (BACKWARD). The `skipped` columns from `skip` on are left out. A complex number counts as two
// columns. A work-item takes one column; the group works out where CHUNK interchanges move rows before
// it moves them, so that all loads are under way at once. TYPE, BACKWARD, GROUP
#include "linalg.h"
#define CHUNK 32
#define SLOTS (2 * CHUNK)  // the rows of a chunk, then those that its pivots name

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void swap(__global void *a_base, ulong a_offset, __global const void *pivot_base, ulong pivot_offset,
                   long skip, long skipped, const LinalgParams p) {
  __local int row[SLOTS], from[SLOTS], partner[CHUNK];
  const long groups = (p.columns + GROUP - 1) / GROUP, m = get_group_id(0) / groups;
  const int id = get_local_id(0);
  long column = (get_group_id(0) - m * groups) * GROUP + id;
  const bool inside = column < p.columns;
  if (column >= skip) column += skipped;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch + column;
  __global const int *pivots = AT_CONST(i32, pivot_base, pivot_offset) + m * p.vector_batch + p.first;
  for (long done = 0; done < p.steps; done += CHUNK) {
    const int count = (int)min((long)CHUNK, p.steps - done);
    const long begin = BACKWARD ? p.steps - done - count : done;
    const int first = (int)(p.first + begin);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = id; s < SLOTS; s += GROUP) {
      const int i = s % CHUNK;
      row[s] = i >= count ? -1 : s < CHUNK ? first + i : pivots[begin + i] - 1;
      from[s] = s;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // The slot that stands for a pivot's row is the first one of that row.
    for (int i = id; i < count; i += GROUP) {
      const int pivot = row[CHUNK + i];
      int slot = pivot >= first && pivot < first + count ? pivot - first : CHUNK;
      while (row[slot] != pivot) ++slot;
      partner[i] = slot;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0) {
      for (int k = 0; k < count; ++k) {
        const int i = BACKWARD ? count - 1 - k : k, other = partner[i], held = from[i];
        from[i] = from[other];
        from[other] = held;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!inside) continue;
    T moved[SLOTS];
    UNROLL for (int s = 0; s < SLOTS; ++s)
      if (from[s] != s) moved[s] = a[row[from[s]] * p.a_row];
    UNROLL for (int s = 0; s < SLOTS; ++s)
      if (from[s] != s) a[row[s] * p.a_row] = moved[s];
  }
}
