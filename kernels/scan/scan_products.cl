// cumprod of floats in a row-major [outer, n, inner], with the results of one running product in ATen's
// accumulator: a double for float and double, a float for 16-bit types. Partial products have a separate
// exponent, so that none of them overflows or underflows. Where the running product leaves the accumulator's
// normal range (exponents LOWEST to HIGHEST), it is computed step by step: infinite from there on, or rounded
// to multiples of the smallest denormal number, 2^SMALLEST. count = outer * inner rows. WALK: a work-item
// goes along whole rows; else a work-group of LOCAL sweeps a row in tiles. COMPUTE, A (input), OUT; DOUBLE:
// COMPUTE is f64
#include "types.h"
#include "range.h"
typedef CTYPE(COMPUTE) T;
#if DOUBLE
typedef ulong Bits;
#define AS_BITS as_ulong
#define AS_NUMBER as_double
#define SMALLEST_NORMAL DBL_MIN
#define FRACTION_BITS 52
#define BIAS 1022
#else
typedef uint Bits;
#define AS_BITS as_uint
#define AS_NUMBER as_float
#define SMALLEST_NORMAL FLT_MIN
#define FRACTION_BITS 23
#define BIAS 126
#endif
#define EXPONENT_BITS ((Bits)(2 * BIAS + 3) << FRACTION_BITS)

// fraction * 2^exponent, the fraction in [0.5, 1); 0, infinities and NaN have the exponent 0.
typedef struct {
  T fraction;
  int exponent;
} Wide;

INLINE int has_exponent(T v) { return v != 0 && fabs(v) < (T)INFINITY; }

INLINE Wide wide(T v) {
  Wide w = {v, 0};
  if (!has_exponent(v)) return w;
  const int denormal = fabs(v) < (T)SMALLEST_NORMAL;
  const Bits u = AS_BITS(denormal ? v * (T)(1L << 60) : v);
  w.exponent = (int)((u & EXPONENT_BITS) >> FRACTION_BITS) - BIAS - (denormal ? 60 : 0);
  w.fraction = AS_NUMBER((u & ~EXPONENT_BITS) | (Bits)BIAS << FRACTION_BITS);
  return w;
}

INLINE T power_of_two(int exponent) { return AS_NUMBER((Bits)(exponent + BIAS + 1) << FRACTION_BITS); }

// The number; scaled in two steps, of which only the last one rounds.
INLINE T number(Wide w) {
  const int exponent = clamp(w.exponent, -2 * BIAS, 2 * BIAS), half_way = exponent / 2;
  return w.fraction * power_of_two(half_way) * power_of_two(exponent - half_way);
}

INLINE Wide times(Wide x, Wide y) {
  Wide w = {x.fraction * y.fraction, 0};
  if (has_exponent(w.fraction)) {
    const int small = fabs(w.fraction) < (T)0.5f;
    w.fraction = small ? w.fraction * 2 : w.fraction;
    w.exponent = x.exponent + y.exponent - small;
  }
  return w;
}

INLINE int is_beyond(Wide w) { return w.exponent > HIGHEST || w.exponent < LOWEST; }

// The value that the accumulator would hold.
INLINE Wide settled(Wide w) {
  if (!is_beyond(w)) return w;
  if (w.exponent > 0) {
    const Wide infinite = {copysign((T)INFINITY, w.fraction), 0};
    return infinite;
  }
  Wide denormal =
      wide(rint(w.fraction * power_of_two(clamp(w.exponent - (SMALLEST), -2, FRACTION_BITS + 1))));
  if (denormal.fraction != 0) denormal.exponent += SMALLEST;
  return denormal;
}

#define GET(i) wide(TO(COMPUTE, LOAD(A, in, (i) * inner)))

#if WALK
GROUP
#else
__attribute__((reqd_work_group_size(LOCAL, 1, 1)))
#endif
__kernel void products(__global const void *in_base, ulong in_offset, __global void *out_base,
                       ulong out_offset, long count, long n, long inner, long per_item) {
#if WALK
  FOR_EACH(row, count, per_item) {
#else
  __local T fractions[2][LOCAL];
  __local int exponents[2][LOCAL];
  __local T steps[LOCAL * 4];
  __local int leaves;
  const uint id = get_local_id(0);
  {
    const long row = get_group_id(0);
#endif
    const long o = row / inner, start = o * n * inner + (row - o * inner);
    __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset) + start;
    __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + start;
    Wide before = {1, 0};
#if WALK
    for (long i = 0; i < n; ++i) {
      before = settled(times(before, GET(i)));
      STORE(OUT, out, i * inner, TO(OUT, number(before)));
    }
#else
    for (long tile = 0; tile < n; tile += LOCAL * 4) {
      // Four adjacent elements per item; the items' totals are scanned in local memory.
      Wide x[4];
      UNROLL for (int k = 0; k < 4; ++k) {
        const long i = tile + id * 4 + k;
        const Wide one = {1, 0}, v = i < n ? GET(i) : one;
        x[k] = k == 0 ? v : times(x[k > 0 ? k - 1 : 0], v);
      }
      uint from = 0;
      fractions[0][id] = x[3].fraction;
      exponents[0][id] = x[3].exponent;
      if (id == 0) leaves = 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (uint reach = 1; reach < LOCAL; reach *= 2) {
        Wide mine = {fractions[from][id], exponents[from][id]};
        if (id >= reach) {
          const Wide left = {fractions[from][id - reach], exponents[from][id - reach]};
          mine = times(left, mine);
        }
        from = 1 - from;
        fractions[from][id] = mine.fraction;
        exponents[from][id] = mine.exponent;
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      Wide left = before;
      if (id > 0) {
        const Wide others = {fractions[from][id - 1], exponents[from][id - 1]};
        left = times(before, others);
      }
      UNROLL for (int k = 0; k < 4; ++k) {
        x[k] = times(left, x[k]);
        if (is_beyond(x[k])) leaves = 1;
      }
      const Wide total = {fractions[from][LOCAL - 1], exponents[from][LOCAL - 1]};
      barrier(CLK_LOCAL_MEM_FENCE);
      if (leaves) {
        UNROLL for (int k = 0; k < 4; ++k) {
          const long i = tile + id * 4 + k;
          steps[id * 4 + k] = i < n ? TO(COMPUTE, LOAD(A, in, i * inner)) : (T)1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id == 0) {
          ROLLED for (int i = 0; i < LOCAL * 4; ++i) {
            before = settled(times(before, wide(steps[i])));
            steps[i] = number(before);
          }
          fractions[0][0] = before.fraction;
          exponents[0][0] = before.exponent;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        before.fraction = fractions[0][0];
        before.exponent = exponents[0][0];
      } else {
        UNROLL for (int k = 0; k < 4; ++k) steps[id * 4 + k] = number(x[k]);
        before = times(before, total);
      }
      UNROLL for (int k = 0; k < 4; ++k) {
        const long i = tile + id * 4 + k;
        if (i < n) STORE(OUT, out, i * inner, TO(OUT, steps[id * 4 + k]));
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
  }
}
