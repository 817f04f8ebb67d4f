// What kernels that torch.compile generates call beyond types.h and math.h, by macros for the types that a
// kernel uses (plugin/torch/torch_ocl/inductor/preamble.py). Truth is 0 or -1 in an int, in an int16 for
// vectors, so that ?:, & and | mean the same for both.
#ifndef OCLTENSOR_GENERATED_H
#define OCLTENSOR_GENERATED_H
#include "types.h"
#define OVERLOADED __attribute__((overloadable))

// Elements i .. i + n - 1 alone, n < 16: zeros follow those that are loaded. Those where a truth holds, zeros
// elsewhere; one element that all lanes share, if the truth holds in any.
#define PARTS(A)                                                                          \
  INLINE CVEC(A) CAT(part_, A)(__global const STYPE(A) * p, long i, int n) {              \
    CTYPE(A) t[16];                                                                       \
    for (int k = 0; k < 16; ++k) t[k] = k < n ? LOAD(A, p, i + k) : (CTYPE(A))0;          \
    return vload16(0, t);                                                                 \
  }                                                                                       \
  INLINE void CAT(put_, A)(__global STYPE(A) * p, long i, CVEC(A) v, int n) {             \
    CTYPE(A) t[16];                                                                       \
    vstore16(v, 0, t);                                                                    \
    for (int k = 0; k < n; ++k) STORE(A, p, i + k, t[k]);                                 \
  }                                                                                       \
  INLINE CVEC(A) CAT(part_where_, A)(__global const STYPE(A) * p, long i, int16 mask) {   \
    if (!any(~mask)) return LOAD16(A, p, i);                                              \
    CTYPE(A) t[16];                                                                       \
    int m[16];                                                                            \
    vstore16(mask, 0, m);                                                                 \
    for (int k = 0; k < 16; ++k) t[k] = m[k] ? LOAD(A, p, i + k) : (CTYPE(A))0;           \
    return vload16(0, t);                                                                 \
  }                                                                                       \
  INLINE CTYPE(A) CAT(one_where_, A)(__global const STYPE(A) * p, long i, int16 mask) {   \
    return any(mask) ? LOAD(A, p, i) : (CTYPE(A))0;                                       \
  }

// A reduction's combination E of a and b: of two values, of a vector's lanes half by half (the order in
// which they are added is part of the result), of the work-items of a row in local memory `t`, which has one
// place for each item of the group: a row's items are `stride` places apart, `items` of them, a power of two.
#define COMBINES(NAME, V, E) INLINE V OVERLOADED CAT(combine_, NAME)(V a, V b) { return E; }
#define COMBINATION(NAME, T, E)                                         \
  COMBINES(NAME, T, E)                                                  \
  LANES_COMBINATION(NAME, T, E)                                         \
  INLINE T OVERLOADED CAT(group_, NAME)(T v, __local T *t, int items, int stride) { \
    const int l = get_local_id(0), item = l / stride % items;           \
    barrier(CLK_LOCAL_MEM_FENCE);                                       \
    t[l] = v;                                                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                       \
    for (int s = items / 2; s > 0; s /= 2) {                            \
      if (item < s) t[l] = CAT(combine_, NAME)(t[l], t[l + s * stride]); \
      barrier(CLK_LOCAL_MEM_FENCE);                                     \
    }                                                                   \
    return t[l - item * stride];                                        \
  }
#ifdef VECTORS
#define LANES_COMBINATION(NAME, T, E)                                                     \
  COMBINES(NAME, CAT(T, 2), E)                                                            \
  COMBINES(NAME, CAT(T, 4), E)                                                            \
  COMBINES(NAME, CAT(T, 8), E)                                                            \
  COMBINES(NAME, CAT(T, 16), E)                                                           \
  INLINE T OVERLOADED CAT(lanes_, NAME)(CAT(T, 16) v) {                                   \
    const CAT(T, 8) v8 = CAT(combine_, NAME)(v.lo, v.hi);                                 \
    const CAT(T, 4) v4 = CAT(combine_, NAME)(v8.lo, v8.hi);                               \
    const CAT(T, 2) v2 = CAT(combine_, NAME)(v4.lo, v4.hi);                               \
    return CAT(combine_, NAME)(v2.x, v2.y);                                               \
  }
#else
#define LANES_COMBINATION(NAME, T, E)
#endif

// The mean of n numbers and the sum of their squared differences from it; two sets are combined as by
// T. F. Chan, G. H. Golub and R. J. LeVeque, 1979.
#define MOMENTS(T)                                                                        \
  typedef struct {                                                                        \
    T mean, m2, n;                                                                        \
  } CAT(Moments_, T);                                                                     \
  INLINE CAT(Moments_, T) OVERLOADED combine_moments(CAT(Moments_, T) a, CAT(Moments_, T) b) { \
    const T n = a.n + b.n, part = n == 0 ? 0 : b.n / n, d = b.mean - a.mean;              \
    const CAT(Moments_, T) r = {a.mean + d * part, a.m2 + b.m2 + d * d * a.n * part, n};  \
    return r;                                                                             \
  }                                                                                       \
  INLINE CAT(Moments_, T) OVERLOADED lanes_moments(CAT(T, 16) mean, CAT(T, 16) m2, CAT(T, 16) n) { \
    T means[16], m2s[16], ns[16];                                                         \
    vstore16(mean, 0, means);                                                             \
    vstore16(m2, 0, m2s);                                                                 \
    vstore16(n, 0, ns);                                                                   \
    CAT(Moments_, T) all = {0, 0, 0};                                                     \
    for (int k = 0; k < 16; ++k) {                                                        \
      const CAT(Moments_, T) lane = {means[k], m2s[k], ns[k]};                            \
      all = combine_moments(all, lane);                                                   \
    }                                                                                     \
    return all;                                                                           \
  }                                                                                       \
  INLINE CAT(Moments_, T) OVERLOADED group_moments(CAT(Moments_, T) v,                    \
                                                   __local CAT(Moments_, T) *t,           \
                                                   int items, int stride) {               \
    const int l = get_local_id(0), item = l / stride % items;                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                         \
    t[l] = v;                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                         \
    for (int s = items / 2; s > 0; s /= 2) {                                              \
      if (item < s) t[l] = combine_moments(t[l], t[l + s * stride]);                      \
      barrier(CLK_LOCAL_MEM_FENCE);                                                       \
    }                                                                                     \
    return t[l - item * stride];                                                          \
  }

// Integer division; by zero it gives 0, and the lowest number over -1 wraps, where processors would trap.
#define FLOORED_DIVISION(V)                                                               \
  INLINE V OVERLOADED divided_rest(V a, V b) { return a - divided(a, b) * b; }            \
  INLINE V OVERLOADED floor_divided(V a, V b) {                                           \
    const V q = divided(a, b), r = a - q * b;                                             \
    return (r != (V)(0) && ((b < (V)(0)) != (r < (V)(0)))) ? (V)(q - (V)(1)) : q;         \
  }                                                                                       \
  INLINE V OVERLOADED floor_divided_rest(V a, V b) {                                      \
    const V r = a - divided(a, b) * b;                                                    \
    return (r != (V)(0) && ((b < (V)(0)) != (r < (V)(0)))) ? (V)(r + b) : r;              \
  }
#define SIGNED_DIVISION(V)                                                                \
  INLINE V OVERLOADED divided(V a, V b) {                                                 \
    const V one = (V)(1), minus = (V)(-1), none = (V)(0), negative = -a;                  \
    const V q = a / ((b == none || b == minus) ? one : b);                                \
    return (b == none) ? none : ((b == minus) ? negative : q);                            \
  }                                                                                       \
  FLOORED_DIVISION(V)
#define UNSIGNED_DIVISION(V)                                                              \
  INLINE V OVERLOADED divided(V a, V b) {                                                 \
    const V one = (V)(1), none = (V)(0), q = a / ((b == none) ? one : b);                 \
    return (b == none) ? none : q;                                                        \
  }                                                                                       \
  FLOORED_DIVISION(V)

// Of index expressions, whose divisors are positive.
INLINE long index_div(long a, long b) { return a / b - (a % b < 0); }
INLINE long index_mod(long a, long b) { return a % b < 0 ? a % b + b : a % b; }

#ifdef OCLTENSOR_FAULTS_H
// An index into a dimension; 0 for one that is out of range, which is reported.
INLINE long checked_index(long index, long size, FAULT_PARAMETERS) {
  if (index >= 0 && index < size) return index;
  report_fault(faults, fault_site, index, size);
  return 0;
}
#endif

// Rounding to 16 bits and back.
INLINE float OVERLOADED rounded_f16(float v) {
  ushort bits;
  vstore_half_rte(v, 0, (half *)&bits);
  return vload_half(0, (const half *)&bits);
}
INLINE float OVERLOADED rounded_bf16(float v) { return as_float((uint)round_bf16(v) << 16); }
#ifdef VECTORS
INLINE float16 OVERLOADED rounded_f16(float16 v) {
  ushort16 bits;
  vstore_half16_rte(v, 0, (half *)&bits);
  return vload_half16(0, (const half *)&bits);
}
INLINE float16 OVERLOADED rounded_bf16(float16 v) {
  const uint16 u = as_uint16(v), r = (u + 0x7fff + ((u >> 16) & 1)) & (uint16)(0xffff0000u);
  return (v != v) ? (float16)(NAN) : as_float16(r);
}
#endif
// The 16-bit patterns themselves.
INLINE ushort bits_f16(float v) {
  ushort bits;
  vstore_half_rte(v, 0, (half *)&bits);
  return bits;
}
INLINE float from_pattern_f16(ushort bits) { return vload_half(0, (const half *)&bits); }
INLINE ushort bits_bf16(float v) { return round_bf16(v); }
INLINE float from_pattern_bf16(ushort bits) { return as_float((uint)bits << 16); }
#endif
