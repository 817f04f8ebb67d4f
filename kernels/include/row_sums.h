// Sums over a contiguous row for CPU drivers, in blocks of 4096 so that rounding errors grow slowly. Needs T,
// T16.
#ifndef OCLTENSOR_ROW_SUMS_H
#define OCLTENSOR_ROW_SUMS_H
INLINE T sum_lanes(T16 v) {
  v += v.s89abcdef89abcdef;
  v += v.s4567456745674567;
  v += v.s2323232323232323;
  return v.s0 + v.s1;
}
// total += TERM16(i) (elements i .. i + 15) over the whole vectors of n elements; i becomes their end
#define ADD_VECTORS(total, i, n, TERM16)                          \
  while (i + 16 <= (n)) {                                         \
    const long end = min((long)(n), i + 4096);                    \
    T16 q0 = (T16)(0), q1 = q0, q2 = q0, q3 = q0;                 \
    for (; i + 64 <= end; i += 64) {                              \
      q0 += TERM16(i);                                            \
      q1 += TERM16(i + 16);                                       \
      q2 += TERM16(i + 32);                                       \
      q3 += TERM16(i + 48);                                       \
    }                                                             \
    for (; i + 16 <= end; i += 16) q0 += TERM16(i);               \
    total += (q0 + q1) + (q2 + q3);                               \
  }
// result = sum of TERM(i), i < n; TERM16(i): elements i .. i + 15 at once
#define SUM_ROW(result, n, TERM, TERM16)                          \
  {                                                               \
    T16 total = (T16)(0);                                         \
    T rest = 0;                                                   \
    long i = 0;                                                   \
    ADD_VECTORS(total, i, n, TERM16)                              \
    for (; i < (n); ++i) rest += TERM(i);                         \
    result = rest + sum_lanes(total);                             \
  }
// sum += G16(i), dot += G16(i) * D16(i) over the same vectors in the same blocks
#define ADD_PRODUCTS(sum, dot, i, n, G16, D16)                    \
  while (i + 16 <= (n)) {                                         \
    const long end = min((long)(n), i + 4096);                    \
    T16 a0 = (T16)(0), a1 = a0, b0 = a0, b1 = a0;                 \
    for (; i + 32 <= end; i += 32) {                              \
      const T16 g0 = G16(i), g1 = G16(i + 16);                    \
      a0 += g0;                                                   \
      b0 += g0 * D16(i);                                          \
      a1 += g1;                                                   \
      b1 += g1 * D16(i + 16);                                     \
    }                                                             \
    for (; i + 16 <= end; i += 16) {                              \
      const T16 g = G16(i);                                       \
      a0 += g;                                                    \
      b0 += g * D16(i);                                           \
    }                                                             \
    sum += a0 + a1;                                               \
    dot += b0 + b1;                                               \
  }
#endif
