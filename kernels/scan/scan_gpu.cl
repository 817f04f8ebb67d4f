// Cumulative sums, products and log-sums of exponentials (COMBINE of x, y; IDENTITY) of [outer, n, inner] for
// GPUs. COLUMNS: one work-item per row, adjacent work-items take adjacent rows; else a work-group sweeps a
// row in tiles. COMPUTE, A (input), OUT, GROUP
#include "types.h"
typedef CTYPE(COMPUTE) T;
INLINE T join(T x, T y) { return COMBINE; }

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void scan(__global const void *a_base, ulong a_offset, __global void *out_base, ulong out_offset,
                   long outer, long n, long inner) {
#ifdef COLUMNS
  const long row = get_global_id(0);
  if (row >= outer * inner) return;
#else
  const long row = get_group_id(0);
#endif
  const long o = row / inner, start = o * n * inner + (row - o * inner);
  __global const STYPE(A) *in = AT_CONST(A, a_base, a_offset) + start;
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + start;
  T before = IDENTITY;
#ifdef COLUMNS
  for (long i = 0; i < n;) {
    const long end = min(n, i + 256);
    T here = IDENTITY;
    for (; i < end; ++i) {
      here = join(here, TO(COMPUTE, LOAD(A, in, i * inner)));
      STORE(OUT, out, i * inner, TO(OUT, join(before, here)));
    }
    before = join(before, here);
  }
#else
  __local T shared[2][GROUP];
  const uint id = get_local_id(0);
  for (long tile = 0; tile < n; tile += GROUP * 4) {
    // Four adjacent elements per item; the items' totals are scanned in local memory.
    T x[4];
    UNROLL for (int k = 0; k < 4; ++k) {
      const long i = tile + id * 4 + k;
      const T v = i < n ? TO(COMPUTE, LOAD(A, in, i * inner)) : (T)IDENTITY;
      x[k] = k == 0 ? v : join(x[k > 0 ? k - 1 : 0], v);
    }
    uint from = 0;
    shared[0][id] = x[3];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint reach = 1; reach < GROUP; reach *= 2) {
      const T mine = shared[from][id];
      shared[1 - from][id] = id >= reach ? join(shared[from][id - reach], mine) : mine;
      from = 1 - from;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    const T left = id > 0 ? join(before, shared[from][id - 1]) : before;
    UNROLL for (int k = 0; k < 4; ++k) {
      const long i = tile + id * 4 + k;
      if (i < n) STORE(OUT, out, i * inner, TO(OUT, join(left, x[k])));
    }
    before = join(before, shared[from][GROUP - 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#endif
}
