// Loss scaling: multiplies gradients (role 0, type A) by the inverse scale, sets a flag if one is not finite,
// and computes the next scale.
#include "multi_tensor.h"

#ifdef UNSCALE
ITEMS __kernel void unscale(TENSOR_LISTS, const MultiTensorParams p) {
  volatile __global int *found = (volatile __global int *)PLACE(p.shared[0]);
  const T inverse = SHARED(f32, 1);
  int bad = 0;
  CHUNKS_OF_ITEM {
    LOCATE
    __global STYPE(A) *gradients = ROLE(A, 0);
#define BODY(V, N)                     \
  const V g = GET(N, A, gradients);    \
  bad |= NOT_FINITE##N(g);             \
  PUT(N, A, gradients, g * (V)(inverse));
#define NOT_FINITE(g) !isfinite(g)
#define NOT_FINITE16(g) !all(isfinite(g))
    SWEEP(BODY)
  }
  if (bad) atomic_xchg(found, as_int(1.0f));
}
#else
__kernel void update_scale(__global void *scale_base, ulong scale_offset, __global void *tracker_base,
                           ulong tracker_offset, __global const void *found_base, ulong found_offset,
                           float growth, float backoff, long interval) {
  __global float *scale = AT(f32, scale_base, scale_offset);
  __global int *tracker = AT(i32, tracker_base, tracker_offset);
  if (*AT_CONST(f32, found_base, found_offset) > 0) {
    *scale *= backoff;
    *tracker = 0;
    return;
  }
  const int successes = *tracker + 1;
  const float grown = *scale * growth;
  if (successes == interval && isfinite(grown)) *scale = grown;
  *tracker = successes == interval ? 0 : successes;
}
#endif
