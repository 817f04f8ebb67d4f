// Backward of softmax and log-softmax (LOG) for CPU drivers; shapes as in softmax_cpu.cl. a: gradient, b: the
// forward's result.
#include "nest_params.h"
#include "types.h"
#include "exp.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#include "row_sums.h"

#define GRAD(i) TO(COMPUTE, LOAD(A, grad, i))
#define GRAD16(i) TO16(COMPUTE, LOAD16(A, grad, i))
#define RESULT(i) TO(COMPUTE, LOAD(B, result, i))
#define RESULT16(i) TO16(COMPUTE, LOAD16(B, result, i))
#if LOG
#define TERM(i) GRAD(i)
#define TERM16(i) GRAD16(i)
#define SLOPE(i, s) (GRAD(i) - exp(RESULT(i)) * (s))
#define SLOPE16(i, s) (GRAD16(i) - exp_16(RESULT16(i)) * (s))
#else
#define TERM(i) (GRAD(i) * RESULT(i))
#define TERM16(i) (GRAD16(i) * RESULT16(i))
#define SLOPE(i, s) ((GRAD(i) - (s)) * RESULT(i))
#define SLOPE16(i, s) ((GRAD16(i) - (s)) * RESULT16(i))
#endif
#define POINTERS                                                                                  \
  __global const STYPE(A) *grad, __global const STYPE(B) *result, __global STYPE(OUT) *out, long n

INLINE void along(POINTERS) {
  T sum;
  SUM_ROW(sum, n, TERM, TERM16)
  long i;
  for (i = 0; i + 16 <= n; i += 16) STORE16(OUT, out, i, SLOPE16(i, (T16)(sum)));
  ROLLED for (; i < n; ++i) STORE(OUT, out, i, SLOPE(i, sum));
}

INLINE void across(POINTERS, long inner, const int width) {
  T16 sum[4];
  UNROLL for (int k = 0; k < width; ++k) sum[k] = (T16)(0);
  for (long i = 0; i < n; ++i) UNROLL for (int k = 0; k < width; ++k) sum[k] += TERM16(i * inner + 16 * k);
  for (long i = 0; i < n; ++i)
    UNROLL for (int k = 0; k < width; ++k)
      STORE16(OUT, out, i * inner + 16 * k, SLOPE16(i * inner + 16 * k, sum[k]));
}

INLINE void one_column(POINTERS, long inner) {
  T sum = 0;
  for (long i = 0; i < n; ++i) sum += TERM(i * inner);
  for (long i = 0; i < n; ++i) STORE(OUT, out, i * inner, SLOPE(i * inner, sum));
}

ONE_ITEM __kernel void softmax(__global const void *a_base, ulong a_offset, __global const void *b_base,
                               ulong b_offset, __global void *out_base, ulong out_offset, const NestParams s,
                               long per) {
  const long outer = s.outer, n = s.n, inner = s.inner;
  __global const STYPE(A) *grad = AT_CONST(A, a_base, a_offset);
  __global const STYPE(B) *result = AT_CONST(B, b_base, b_offset);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
#define FROM(at) grad + (at), result + (at), out + (at), n
  const long first = get_global_id(0) * per;
  if (inner == 1) {
    for (long r = first; r < min(outer, first + per); ++r) along(FROM(r * n));
    return;
  }
  const long blocks = (inner + 63) / 64;
  for (long b = first; b < min(outer * blocks, first + per); ++b) {
    const long o = b / blocks, c1 = min(inner, (b - o * blocks + 1) * 64), base = o * n * inner;
    long c = (b - o * blocks) * 64;
    if (c + 64 <= c1) {
      across(FROM(base + c), inner, 4);
      continue;
    }
    for (; c + 16 <= c1; c += 16) across(FROM(base + c), inner, 1);
    for (; c < c1; ++c) one_column(FROM(base + c), inner);
  }
}
