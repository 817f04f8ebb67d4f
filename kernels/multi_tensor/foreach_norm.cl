// Norms of a list of tensors: a partial result per chunk, then one per tensor. Roles: input (A), result
// (OUT). Defines: ORDER 1, 2, or 0 for the largest magnitude; SPAN: the size of a work-group of GPUs.
#include "multi_tensor.h"

#if ORDER == 0
#define COMBINE(x, y) (((x) > (y) || (x) != (x)) ? (x) : (y))
#define OF(x) fabs(x)
#else
#define COMBINE(x, y) ((x) + (y))
#define OF(x) (ORDER == 1 ? fabs(x) : (x) * (x))
#endif

#if !CPU_STYLE
// The combination over the work-group, in item 0.
INLINE T over_group(__local T *shared, T v) {
  const uint id = get_local_id(0);
  shared[id] = v;
  for (uint far = SPAN / 2; far > 0; far /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < far) {
      const T x = shared[id], y = shared[id + far];
      shared[id] = COMBINE(x, y);
    }
  }
  return shared[0];
}
#endif

#define PARTIAL ((__global T *)((__global char *)partial_base + partial_offset))

ITEMS __kernel void norm(TENSOR_LISTS, __global void *partial_base, ulong partial_offset,
                         const MultiTensorParams p) {
#if !CPU_STYLE
  __local T shared[SPAN];
#endif
  CHUNKS_OF_ITEM {
    LOCATE
    __global const STYPE(A) *in = ROLE(A, 0);
    T total = 0;
#if CPU_STYLE
    T16 totals = (T16)(0);
    long i = start;
    for (; i + 16 <= end; i += 16) {
      const T16 v = GET(16, A, in), x = OF(v);
      totals = COMBINE(x, totals);
    }
    T lane[16];
    vstore16(totals, 0, lane);
    for (int k = 0; k < 16; ++k) total = COMBINE(lane[k], total);
    for (; i < end; ++i) {
      const T v = GET(, A, in), x = OF(v);
      total = COMBINE(x, total);
    }
    PARTIAL[chunk] = total;
#else
    for (long i = start + get_local_id(0); i < end; i += SPAN) {
      const T v = GET(, A, in), x = OF(v);
      total = COMBINE(x, total);
    }
    total = over_group(shared, total);
    if (get_local_id(0) == 0) PARTIAL[chunk] = total;
#endif
  }
}

// One item (CPU drivers) or work-group (GPUs) per tensor.
ITEMS __kernel void finish(TENSOR_LISTS, __global void *partial_base, ulong partial_offset,
                           const MultiTensorParams p) {
#if CPU_STYLE
  const long tensor = get_global_id(0), first = 0, step = 1;
#else
  __local T shared[SPAN];
  const long tensor = get_group_id(0), first = get_local_id(0), step = SPAN;
#endif
  __global const ulong *record = TABLE + tensor * (3 + ROLES);
  const long chunks = ((long)record[1] + p.chunk - 1) / p.chunk;
  T total = 0;
  for (long k = first; k < chunks; k += step) {
    const T x = PARTIAL[(long)record[0] + k];
    total = COMBINE(x, total);
  }
#if !CPU_STYLE
  total = over_group(shared, total);
  if (get_local_id(0) != 0) return;
#endif
  STORE(OUT, ROLE(OUT, 1), 0, TO(OUT, ORDER == 2 ? sqrt(total) : total));
}
