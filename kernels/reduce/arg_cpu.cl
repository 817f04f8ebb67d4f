// Extreme values and their positions for CPU drivers. inner == 1: a work-item takes `share` outputs, vectors
// along their elements; else `share` neighbouring outputs, vectors across them. Dimension 1 of the range:
// pieces of `chunk` elements.
#include "arg_formula.h"
#define WIDEST 64  // vectors in a block of columns

INLINE void pick(T16 *best, P16 *at, T16 x, P16 i) {
  *at = (x COMPARE *best || (x != x && *best == *best)) ? i : *at;
  *best = (x COMPARE *best || (x != x && *best == *best)) ? x : *best;
}
#define ITEM(i) TO(COMPUTE, LOAD(A, in, i))
#define ITEM16(i) TO16(COMPUTE, LOAD16(A, in, i))

INLINE Best along(__global const STYPE(A) *in, P n) {
  Best best = {ITEM(0), 0};
  P i = 1;
  if (n >= 32) {
    const P16 count = (P16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    P16 at0 = count, at1 = count + (P16)(16);
    T16 best0 = ITEM16(0), best1 = ITEM16(16);
    for (i = 32; i + 32 <= n; i += 32) {
      pick(&best0, &at0, ITEM16(i), count + (P16)(i));
      pick(&best1, &at1, ITEM16(i + 16), count + (P16)(i + 16));
    }
    T values[32];
    P ats[32];
    vstore16(best0, 0, values);
    vstore16(best1, 1, values);
    vstore16(at0, 0, ats);
    vstore16(at1, 1, ats);
    for (int k = 0; k < 32; ++k) {
      const Best one = {values[k], ats[k]};
      best = choose(best, one);
    }
  }
  for (; i < n; ++i) {
    const Best one = {ITEM(i), i};
    if (better(one.value, best.value)) best = one;
  }
  return best;
}

ONE_ITEM __kernel void arg(__global const void *a_base, ulong a_offset, ARG_OUTPUTS, long outer, long length,
                           long inner, long chunk, long share) {
  const long first = get_global_id(1) * chunk, n = min(chunk, length - first);
  const long results = get_global_id(1) * outer * inner;  // the first one of this piece
  if (inner == 1) {
    const long end = min(outer, (long)(get_global_id(0) + 1) * share);
    for (long o = get_global_id(0) * share; o < end; ++o) {
      Best best = along(AT_CONST(A, a_base, a_offset) + o * length + first, (P)n);
      best.at += first;
      WRITE(results + o, best)
    }
    return;
  }
  const long blocks = (inner + share - 1) / share, o = get_global_id(0) / blocks;
  const long c0 = (get_global_id(0) - o * blocks) * share, c1 = min(inner, c0 + share);
  __global const STYPE(A) *base = AT_CONST(A, a_base, a_offset) + (o * length + first) * inner;
  const int vectors = (c1 - c0) / 16;
  T16 best[WIDEST];
  P16 at[WIDEST];
  for (int v = 0; v < vectors; ++v) {
    best[v] = TO16(COMPUTE, LOAD16(A, base, c0 + 16 * v));
    at[v] = (P16)((P)0);
  }
  for (P i = 1; i < (P)n; ++i) {
    __global const STYPE(A) *in = base + (long)i * inner + c0;
    for (int v = 0; v < vectors; ++v) pick(&best[v], &at[v], ITEM16(16 * v), (P16)(i));
  }
  for (int k = 0; k < 16 * vectors; ++k) {
    const Best one = {((const T *)&best[k / 16])[k % 16], ((const P *)&at[k / 16])[k % 16] + first};
    WRITE(results + o * inner + c0 + k, one)
  }
  long c = c0 + 16 * vectors;
  for (; c < c1; ++c) {
    __global const STYPE(A) *in = base + c;
    Best best = {ITEM(0), 0};
    for (long i = 1; i < n; ++i) {
      const Best one = {ITEM(i * inner), i};
      if (better(one.value, best.value)) best = one;
    }
    best.at += first;
    WRITE(results + o * inner + c, best)
  }
}
