// softmax and log-softmax (LOG) of [outer, n, inner] for CPU drivers. inner == 1: vectors along a row; else
// across columns. A work-item takes `per` rows, or `per` blocks of 64 columns. A NaN makes the sum NaN, so
// the maximum may ignore it.
//   COMPUTE, A (input), OUT; KEEP: OUT is COMPUTE, so that the output can hold the exponentials meanwhile
#include "nest_params.h"
#include "types.h"
#include "exp.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#include "row_sums.h"

INLINE T16 larger(T16 a, T16 b) { return (a > b) ? a : b; }
INLINE T max_lanes(T16 v) {
  v = larger(v, v.s89abcdef89abcdef);
  v = larger(v, v.s4567456745674567);
  v = larger(v, v.s2323232323232323);
  return v.s0 > v.s1 ? v.s0 : v.s1;
}
#define ITEM(i) LOAD(A, in, i)
#define ITEM16(i) LOAD16(A, in, i)

INLINE void along(__global const STYPE(A) *in, __global STYPE(OUT) *out, long n) {
  T16 m0 = (T16)(-INFINITY), m1 = m0, m2 = m0, m3 = m0;
  long i = 0;
  for (; i + 64 <= n; i += 64) {
    m0 = larger(ITEM16(i), m0);
    m1 = larger(ITEM16(i + 16), m1);
    m2 = larger(ITEM16(i + 32), m2);
    m3 = larger(ITEM16(i + 48), m3);
  }
  for (; i + 16 <= n; i += 16) m0 = larger(ITEM16(i), m0);
  T top = max_lanes(larger(larger(m0, m1), larger(m2, m3)));
  const long vectors = i;
  ROLLED for (; i < n; ++i) top = ITEM(i) > top ? ITEM(i) : top;
  const T16 top16 = (T16)(top);

  T16 s0 = (T16)(0), s1 = s0, s2 = s0, s3 = s0;
  T sum = 0;
#if !LOG && defined(KEEP)
#define HELD(i, v) STORE16(OUT, out, i, v)
#else
#define HELD(i, v)
#endif
  T16 total = (T16)(0), e;
  for (i = 0; i < vectors;) {  // in blocks, so that rounding errors grow slowly
    const long end = min(vectors, i + 4096);
    for (; i + 64 <= end; i += 64) {
      e = exp_16(ITEM16(i) - top16);
      HELD(i, e);
      s0 += e;
      e = exp_16(ITEM16(i + 16) - top16);
      HELD(i + 16, e);
      s1 += e;
      e = exp_16(ITEM16(i + 32) - top16);
      HELD(i + 32, e);
      s2 += e;
      e = exp_16(ITEM16(i + 48) - top16);
      HELD(i + 48, e);
      s3 += e;
    }
    for (; i < end; i += 16) {
      e = exp_16(ITEM16(i) - top16);
      HELD(i, e);
      s0 += e;
    }
    total += (s0 + s1) + (s2 + s3);
    s0 = s1 = s2 = s3 = (T16)(0);
  }
  ROLLED for (; i < n; ++i) sum += exp(ITEM(i) - top);
  sum += sum_lanes(total);
#if LOG
  const T log_sum = log(sum);
  for (i = 0; i < vectors; i += 16) STORE16(OUT, out, i, ITEM16(i) - top16 - (T16)(log_sum));
  ROLLED for (; i < n; ++i) STORE(OUT, out, i, ITEM(i) - top - log_sum);
#else
  const T scale = (T)1 / sum;
#ifdef KEEP
  for (i = 0; i < vectors; i += 16) STORE16(OUT, out, i, LOAD16(OUT, out, i) * (T16)(scale));
#else
  for (i = 0; i < vectors; i += 16) STORE16(OUT, out, i, exp_16(ITEM16(i) - top16) * (T16)(scale));
#endif
  ROLLED for (; i < n; ++i) STORE(OUT, out, i, exp(ITEM(i) - top) * scale);
#endif
}

INLINE void across(__global const STYPE(A) *in, __global STYPE(OUT) *out, long n, long inner,
                   const int width) {
  T16 top[4], sum[4];
  UNROLL for (int k = 0; k < width; ++k) top[k] = (T16)(-INFINITY);
  UNROLL for (int k = 0; k < width; ++k) sum[k] = (T16)(0);
  for (long i = 0; i < n; ++i)
    UNROLL for (int k = 0; k < width; ++k) top[k] = larger(ITEM16(i * inner + 16 * k), top[k]);
  for (long i = 0; i < n; ++i)
    UNROLL for (int k = 0; k < width; ++k) {
      const T16 e = exp_16(ITEM16(i * inner + 16 * k) - top[k]);
      HELD(i * inner + 16 * k, e);
      sum[k] += e;
    }
  UNROLL for (int k = 0; k < width; ++k) sum[k] = LOG ? log(sum[k]) : (T16)(1) / sum[k];
  for (long i = 0; i < n; ++i)
    UNROLL for (int k = 0; k < width; ++k) {
      const long at = i * inner + 16 * k;
#if LOG
      STORE16(OUT, out, at, ITEM16(at) - top[k] - sum[k]);
#elif defined(KEEP)
      STORE16(OUT, out, at, LOAD16(OUT, out, at) * sum[k]);
#else
      STORE16(OUT, out, at, exp_16(ITEM16(at) - top[k]) * sum[k]);
#endif
    }
}

INLINE void one_column(__global const STYPE(A) *in, __global STYPE(OUT) *out, long n, long inner) {
  T top = -INFINITY, sum = 0;
  for (long i = 0; i < n; ++i) top = ITEM(i * inner) > top ? ITEM(i * inner) : top;
  for (long i = 0; i < n; ++i) sum += exp(ITEM(i * inner) - top);
  sum = LOG ? log(sum) : (T)1 / sum;
  for (long i = 0; i < n; ++i) {
    const T x = ITEM(i * inner) - top;
    STORE(OUT, out, i * inner, LOG ? x - sum : exp(x) * sum);
  }
}

ONE_ITEM __kernel void softmax(__global const void *a_base, ulong a_offset, __global void *out_base,
                               ulong out_offset, const NestParams s, long per) {
  const long outer = s.outer, n = s.n, inner = s.inner;
  __global const STYPE(A) *in = AT_CONST(A, a_base, a_offset);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
  const long first = get_global_id(0) * per;
  if (inner == 1) {
    for (long r = first; r < min(outer, first + per); ++r) along(in + r * n, out + r * n, n);
    return;
  }
  const long blocks = (inner + 63) / 64;
  for (long b = first; b < min(outer * blocks, first + per); ++b) {
    const long o = b / blocks, c1 = min(inner, (b - o * blocks + 1) * 64);
    long c = (b - o * blocks) * 64;
    const long base = o * n * inner;
    if (c + 64 <= c1) {
      across(in + base + c, out + base + c, n, inner, 4);
      continue;
    }
    for (; c + 16 <= c1; c += 16) across(in + base + c, out + base + c, n, inner, 1);
    for (; c < c1; ++c) one_column(in + base + c, out + base + c, n, inner);
  }
}
