// LU factorisation of a panel of 32 columns with partial pivoting, for GPUs: one work-group per matrix,
// 32 work-items per row. Pivots count from 1 in the whole matrix. TYPE, PART,
// PIVOT, GROUP
#include "linalg.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void lu(__global void *a_base, ulong a_offset, __global void *pivot_base, ulong pivot_offset,
                 __global void *info_base, ulong info_offset, const LinalgParams p) {
  __local R size[GROUP];
  __local int place[GROUP];
  const long m = get_group_id(0);
  const int id = get_local_id(0), column = id % PANEL, lane = id / PANEL, rows = (int)p.rows;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch;
  __global int *pivots = AT(i32, pivot_base, pivot_offset) + m * p.vector_batch + p.first;
  __global int *info = AT(i32, info_base, info_offset) + m;
  for (int i = 0; i < (int)p.steps; ++i) {
    R most = -1;
    int best = i;
#if PIVOT
    for (int r = i + id; r < rows; r += GROUP) {
      const R here = part_sum(a[r * p.a_row + i]);
      if (here > most) most = here, best = r;
    }
    size[id] = most;
    place[id] = best;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
      if (id < reach) {
        const R other = size[id + reach];
        if (other > size[id] || (other == size[id] && place[id + reach] < place[id]))
          size[id] = other, place[id] = place[id + reach];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    best = place[0];
#endif
    if (id < PANEL) {  // swaps the rows, which may be the same one
      const T x = a[i * p.a_row + id], y = a[best * p.a_row + id];
      a[best * p.a_row + id] = x;
      a[i * p.a_row + id] = y;
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    const T pivot = a[i * p.a_row + i];
    if (id == 0) {
      pivots[i] = (int)(p.first + best + 1);
      if (is_zero(pivot) && *info == 0) *info = (int)(p.first + i + 1);
    }
    if (!is_zero(pivot))
      for (int r = i + 1 + id; r < rows; r += GROUP)
        a[r * p.a_row + i] = quotient(a[r * p.a_row + i], pivot);
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    if (!is_zero(pivot) && column > i) {
      const T upper = a[i * p.a_row + column];
      for (int r = i + 1 + lane; r < rows; r += GROUP / PANEL)
        a[r * p.a_row + column] -= product(a[r * p.a_row + i], upper);
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  }
}
