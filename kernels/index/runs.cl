// accumulate.cl for GPUs where sequences are long: keys are sorted (stably), each with the position of its source, and the
// work-item at the head of a run of equal keys combines the run in order, for one element of the block. MEAN divides.
// INDEX: the type that counts pieces, uint where they are below 2^31.
#include "types.h"
#include "range.h"
#include "combine.h"
#include "runs_params.h"

GROUP __kernel void runs(__global void *target_base, ulong target_offset, __global const void *key_base,
                         ulong key_offset, __global const void *position_base, ulong position_offset,
                         __global const void *source_base, ulong source_offset, const RunsParams p) {
  __global STYPE(A) *target = AT(A, target_base, target_offset);
  __global const long *keys = AT_CONST(i64, key_base, key_offset);
  __global const long *positions = AT_CONST(i64, position_base, position_offset);
  __global const STYPE(S) *source = AT_CONST(S, source_base, source_offset);
  const T alpha = FROM_BITS(A, p.alpha);
  FOR_EACH(i, p.pieces, p.per_item) {
    const long head = (INDEX)i / (INDEX)p.block, b = i - head * p.block, key = keys[head];
    if ((ulong)key >= (ulong)p.blocks || (head > 0 && keys[head - 1] == key)) continue;
    T sum = LOAD(A, target, key * p.block + b);
    int n = 0;
    for (long k = head; k < p.count && keys[k] == key; ++k, ++n) {
      const T v = SCALED(TO(A, LOAD(S, source, (positions[k] * p.block + b) * p.source_step)));
#if FIRST
      sum = n == 0 ? v : COMBINE(sum, v);
#else
      sum = COMBINE(sum, v);
#endif
    }
#if MEAN
    n += p.extra;
#if FLOATING
    if (n > 1) sum /= (T)n;
#else
    const long q = (long)sum / n;
    if (n > 1) sum = TO(A, (long)sum - q * n < 0 ? q - 1 : q);
#endif
#endif
    STORE(A, target, key * p.block + b, sum);
  }
}
