// cummax and cummin (COMPARE) of [outer, n, inner] with positions; count = outer * inner rows. WALK: a
// work-item goes along whole rows; else a work-group of LOCAL sweeps a row in tiles. A NaN is extreme; of
// equal values the later one counts. A, FLOATING
#include "types.h"
#include "range.h"
typedef CTYPE(A) T;

#if FLOATING
INLINE int replaces(T y, T x) { return y != y || (x == x && y COMPARE x); }
#else
INLINE int replaces(T y, T x) { return y COMPARE x; }
#endif

#if WALK
GROUP
#else
__attribute__((reqd_work_group_size(LOCAL, 1, 1)))
#endif
__kernel void extremes(__global const void *in_base, ulong in_offset, __global void *value_base,
                       ulong value_offset, __global void *index_base, ulong index_offset, long count, long n,
                       long inner, long per_item) {
#if WALK
  FOR_EACH(row, count, per_item) {
#else
  __local T value[2][LOCAL];
  __local long place[2][LOCAL];
  {
    const long row = get_group_id(0);
#endif
    const long o = row / inner, start = o * n * inner + (row - o * inner);
    __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset) + start;
    __global STYPE(A) *values = AT(A, value_base, value_offset) + start;
    __global long *indices = AT(i64, index_base, index_offset) + start;
    T best = LOAD(A, in, 0);
    long at = 0;
#if WALK
    for (long i = 0; i < n; ++i) {
      const T v = LOAD(A, in, i * inner);
      if (replaces(v, best)) best = v, at = i;
      STORE(A, values, i * inner, best);
      indices[i * inner] = at;
    }
#else
    const uint id = get_local_id(0);
    for (long tile = 0; tile < n; tile += LOCAL) {
      const long i = tile + id;
      uint from = 0;
      value[0][id] = LOAD(A, in, min(i, n - 1) * inner);
      place[0][id] = min(i, n - 1);
      barrier(CLK_LOCAL_MEM_FENCE);
      for (uint reach = 1; reach < LOCAL; reach *= 2) {
        const T mine = value[from][id];
        const int keep = id < reach || replaces(mine, value[from][id >= reach ? id - reach : 0]);
        const uint source = keep ? id : id - reach;
        value[1 - from][id] = value[from][source];
        place[1 - from][id] = place[from][source];
        from = 1 - from;
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      const int mine = replaces(value[from][id], best);
      if (i < n) {
        STORE(A, values, i * inner, mine ? value[from][id] : best);
        indices[i * inner] = mine ? place[from][id] : at;
      }
      if (replaces(value[from][LOCAL - 1], best)) best = value[from][LOCAL - 1], at = place[from][LOCAL - 1];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
  }
}
