// Adds (or otherwise combines) sources of type S into blocks of a row-major target of type A, in the order of
// the sources: the same result every time, without atomics. Each work-item writes elements that no other
// writes: on CPU drivers those of a group, or of a range of a group's blocks (it then skips the keys of other
// blocks); on GPUs one element of every block of a group.
// FIRST: the first source replaces the target. COUNTED: counts[element] counts sources (FIRST needs it too).
#include "types.h"
#include "range.h"
#include "combine.h"
#include "accumulate_params.h"

INLINE void step(__global STYPE(A) *target, __global int *counts, long at, T v) {
#if COUNTED
  const int before = counts[at];
  counts[at] = before + 1;
#endif
#if FIRST
  if (before == 0) {
    STORE(A, target, at, v);
    return;
  }
#endif
  STORE(A, target, at, COMBINE(LOAD(A, target, at), v));
}

GROUP __kernel void accumulate(__global void *target_base, ulong target_offset, __global void *count_base,
                               ulong count_offset, __global const void *key_base, ulong key_offset,
                               __global const void *source_base, ulong source_offset,
                               const AccumulateParams p) {
  __global STYPE(A) *target = AT(A, target_base, target_offset);
  __global int *counts = AT(i32, count_base, count_offset);
  __global const STYPE(S) *source = AT_CONST(S, source_base, source_offset);
  const T alpha = FROM_BITS(A, p.alpha);
  FOR_EACH(i, p.pieces, p.per_item) {
#if CPU_STYLE
    const long group = i / p.group_pieces, low = (i - group * p.group_pieces) * p.piece_blocks;
    const long high = p.piece_blocks == 0 ? LONG_MAX : low + p.piece_blocks;
#else
    const long group = i / p.block, b = i - group * p.block, low = 0, high = LONG_MAX;
#endif
    __global const long *keys = AT_CONST(i64, key_base, key_offset) + group * p.key_step;
    for (long l = 0; l < p.length; ++l) {
      const long key = keys[l];
      if (key < low || key >= high) continue;
      const long to = (group * p.target_step + key) * p.block;
      const long from = (group * p.length + l) * p.block * p.source_step;
#if CPU_STYLE
      for (long b = 0; b < p.block; ++b)
#endif
        step(target, counts, to + b, SCALED(TO(A, LOAD(S, source, from + b * p.source_step))));
    }
  }
}

// Means: target / (count + extra) for elements that are sums of more than one number; integers round down.
GROUP __kernel void mean(__global void *target_base, ulong target_offset, __global const void *count_base,
                         ulong count_offset, long elements, long per_item, int extra) {
  __global STYPE(A) *target = AT(A, target_base, target_offset);
  __global const int *counts = AT_CONST(i32, count_base, count_offset);
  FOR_EACH(i, elements, per_item) {
    const int n = counts[i] + extra;
    if (n < 2) continue;
    const T sum = LOAD(A, target, i);
#if FLOATING
    STORE(A, target, i, sum / (T)n);
#else
    const long q = (long)sum / n;
    STORE(A, target, i, TO(A, (long)sum - q * n < 0 ? q - 1 : q));
#endif
  }
}
