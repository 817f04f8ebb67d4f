// LU factorisation of a panel of 32 columns with partial pivoting, for GPUs: a work-item holds a row, so that
// panels have at most GROUP rows. Rows stay where they are until the end; `place` is where a row is by the
// interchanges. After each column a row is turned by one place, so that the column's element is always the
// first. Pivots count from 1 in the whole matrix. TYPE, PART, PIVOT, GROUP
#include "linalg.h"
#define TEAM 32

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void lu(__global void *a_base, ulong a_offset, __global void *pivot_base, ulong pivot_offset,
                 __global void *info_base, ulong info_offset, const LinalgParams p) {
  __local R sizes[GROUP];
  __local int places[GROUP], best_place;
  __local T pivot_row[PANEL];
  const long m = get_group_id(0);
  const int id = get_local_id(0), rows = (int)p.rows;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch;
  __global int *pivots = AT(i32, pivot_base, pivot_offset) + m * p.vector_batch + p.first;
  __global int *info = AT(i32, info_base, info_offset) + m;
  T x[PANEL];
  UNROLL for (int c = 0; c < PANEL; ++c) x[c] = id < rows ? a[id * p.a_row + c] : number(0);
  int place = id;
  ROLLED for (int i = 0; i < PANEL; ++i) {
    const bool eliminated = i < (int)p.steps;
    bool active = id < rows && place >= i && eliminated;
#if PIVOT
    const R size = part_sum(x[0]);
    sizes[id] = !active ? -2 : size >= 0 ? size : -1;  // NaN comes after any number
#else
    sizes[id] = active && place == i ? 1 : -2;
#endif
    places[id] = place;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < TEAM) {
      R most = sizes[id];
      int best = places[id];
      for (int k = id + TEAM; k < GROUP; k += TEAM)
        if (sizes[k] > most || (sizes[k] == most && places[k] < best)) most = sizes[k], best = places[k];
      sizes[id] = most;
      places[id] = best;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0) {
      R most = sizes[0];
      int best = places[0];
      for (int k = 1; k < TEAM; ++k)
        if (sizes[k] > most || (sizes[k] == most && places[k] < best)) most = sizes[k], best = places[k];
      best_place = best;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int best = best_place;
    if (active && place == best)
      UNROLL for (int c = 0; c < PANEL; ++c) pivot_row[c] = c < PANEL - i ? x[c] : number(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    const T pivot = eliminated ? pivot_row[0] : number(0);
    if (id == 0 && eliminated) {
      pivots[i] = (int)(p.first + best + 1);
      if (is_zero(pivot) && *info == 0) *info = (int)(p.first + i + 1);
    }
    if (active && place == best) {
      place = i;
      active = false;
    } else if (active && place == i) {
      place = best;
    }
    T first = x[0], factor = number(0);
    if (active && !is_zero(pivot)) first = factor = quotient(first, pivot);
    const bool changes = active && !is_zero(pivot);
    UNROLL for (int c = 0; c < PANEL - 1; ++c)
      x[c] = changes ? x[c + 1] - product(factor, pivot_row[c + 1]) : x[c + 1];
    x[PANEL - 1] = first;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (id < rows)
    UNROLL for (int c = 0; c < PANEL; ++c) a[place * p.a_row + c] = x[c];
}
