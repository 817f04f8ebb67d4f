// What products of a few rows of x with a quantised weight share: x beside a unit, and what a unit adds to
// sums. Defines: those of quantised.h; TYPE (of x, bias and result), ROWS (of x that a work-item takes),
// HAS_BIAS; for GPUs X_ALIGNED (rows of x begin at multiples of 16 bytes), TURNED.
#ifndef OCLTENSOR_QUANTISED_X_H
#define OCLTENSOR_QUANTISED_X_H
#include "quantised.h"

#if CPU_STYLE
// The elements of x beside a unit from k on, of which `count` exist and the others are 0, each where the
// unit's vectors have its factor.
INLINE void load_unit(__global const STYPE(TYPE) *x, long k, int count, float16 *v) {
  if (count >= UNIT) {
    UNROLL for (int i = 0; i < VECTORS; ++i) v[i] = convert_float16(LOAD16(TYPE, x, k + 16 * i));
  } else {
    float lane[UNIT];
    EACH_ELEMENT for (int i = 0; i < UNIT; ++i) lane[i] = i < count ? (float)LOAD(TYPE, x, k + i) : 0;
    UNROLL for (int i = 0; i < VECTORS; ++i) v[i] = vload16(i, lane);
  }
#if ALTERNATING
  UNROLL for (int i = 0; i < VECTORS; i += 2) {
    const float16 a = v[i], b = v[i + 1];
    v[i] = (float16)(a.even, b.even);
    v[i + 1] = (float16)(a.odd, b.odd);
  }
#endif
}

// Elements of a unit behind the row's end become 0, whatever their bytes are.
INLINE void cut_unit(float16 *v, int count) {
  float lane[UNIT];
  UNROLL for (int i = 0; i < VECTORS; ++i) vstore16(v[i], i, lane);
  EACH_ELEMENT for (int i = 0; i < UNIT; ++i) lane[i] = UNIT_PLACE(i) < count ? lane[i] : 0;
  UNROLL for (int i = 0; i < VECTORS; ++i) v[i] = vload16(i, lane);
}

// Sums of x over each span of a unit: what its offset is multiplied with.
INLINE void sum_spans(const float16 *x, float16 *sums) {
  UNROLL for (int s = 0; s < SPANS; ++s) {
    sums[s] = x[s * SPAN_VECTORS];
    UNROLL for (int i = 1; i < SPAN_VECTORS; ++i) sums[s] += x[s * SPAN_VECTORS + i];
  }
}

// A unit's products with x: the scale is applied to the sum of a span, the offset to that of x.
INLINE float16 add_unit(float16 sum, const float16 *v, const float *scale, const float *offset,
                        const float16 *x, const float16 *x_sums) {
  UNROLL for (int s = 0; s < SPANS; ++s) {
    float16 products = v[s * SPAN_VECTORS] * x[s * SPAN_VECTORS];
    UNROLL for (int i = 1; i < SPAN_VECTORS; ++i)
      products = fma(v[s * SPAN_VECTORS + i], x[s * SPAN_VECTORS + i], products);
    sum = fma((float16)(scale[s]), products, sum);
#if OFFSETS
    sum = fma((float16)(offset[s]), x_sums[s], sum);
#endif
  }
  return sum;
}

INLINE float horizontal_sum(float16 v) {
  const float8 a = v.lo + v.hi;
  const float4 b = a.lo + a.hi;
  const float2 c = b.lo + b.hi;
  return c.x + c.y;
}

// The product of two rows by the weight's values, for sums that are not finite: that of an element and an
// infinite x without the offset may have the other sign than the value's, and sums before the scale may be
// too large.
INLINE float sum_of_values(const Weight w, long n, __global const STYPE(TYPE) *x) {
  float16 sum = (float16)(0);
  ROLLED for (long k = 0; k < w.k; k += UNIT) {
    const int count = WHOLE ? UNIT : (int)min(w.k - k, (long)UNIT);
    float16 v[VECTORS], of_x[VECTORS];
    unit_values(w, n, k, v);
    if (count < UNIT) cut_unit(v, count);
    load_unit(x, k, count, of_x);
    UNROLL for (int i = 0; i < VECTORS; ++i) sum = fma(v[i], of_x[i], sum);
  }
  return horizontal_sum(sum);
}
#else
#include "quantised_steps.h"

#if X_ALIGNED
INLINE float4 four_f32(__global const float *x) { return as_float4(*(__global const uint4 *)x); }
INLINE float4 four_f16(__global const half *x) {
  const uint2 raw = *(__global const uint2 *)x;
  return vload_half4(0, (const half *)&raw);
}
INLINE float4 four_bf16(__global const ushort *x) {
  const uint2 raw = *(__global const uint2 *)x;
  return as_float4((uint4)(raw.x << 16, raw.x & 0xffff0000u, raw.y << 16, raw.y & 0xffff0000u));
}
INLINE float8 eight_f32(__global const float *x) { return (float8)(four_f32(x), four_f32(x + 4)); }
INLINE float8 eight_f16(__global const half *x) {
  const uint4 raw = *(__global const uint4 *)x;
  return vload_half8(0, (const half *)&raw);
}
INLINE float8 eight_bf16(__global const ushort *x) {
  const uint4 raw = *(__global const uint4 *)x, low = raw << 16, high = raw & 0xffff0000u;
  return as_float8((uint8)(low.x, high.x, low.y, high.y, low.z, high.z, low.w, high.w));
}
#define FOUR_AT(x, k) CAT(four_, TYPE)((x) + (k))
#define EIGHT_AT(x, k) CAT(eight_, TYPE)((x) + (k))
#else
#define X_AT(x, k) ((float)LOAD(TYPE, x, k))
#define FOUR_AT(x, k) (float4)(X_AT(x, k), X_AT(x, (k) + 1), X_AT(x, (k) + 2), X_AT(x, (k) + 3))
#define EIGHT_AT(x, k) (float8)(FOUR_AT(x, k), FOUR_AT(x, (k) + 4))
#endif
// x beside a step of the unit from k on: the factors of its first run, then those of its second one.
INLINE float8 factors(__global const STYPE(TYPE) *x, long k, int step) {
#if HALVES && !ALTERNATING
  return (float8)(FOUR_AT(x, k + 4 * step), FOUR_AT(x, k + 16 + 4 * step));
#else
  const float8 v = EIGHT_AT(x, k + 8 * step);
  return ALTERNATING ? (float8)(v.even, v.odd) : v;
#endif
}
// The same where those behind the end are 0.
INLINE float8 factors_before(__global const STYPE(TYPE) *x, long k, int step, long end) {
  if (WHOLE ? k < end : k + 8 * step + 8 <= end) return factors(x, k, step);
  float lane[8];
  UNROLL for (int i = 0; i < 8; ++i) lane[i] = 0;
#if !WHOLE
  UNROLL for (int i = 0; i < 8; ++i) if (k + 8 * step + i < end) lane[i] = LOAD(TYPE, x, k + 8 * step + i);
#endif
  const float8 v = vload8(0, lane);
  return ALTERNATING ? (float8)(v.even, v.odd) : v;
}

// Of a run whose elements are `step` apart: those from `count` on become 0, whatever their bytes are.
INLINE float4 cut4(float4 v, int first, int step, long count) {
  return (float4)(first < count ? v.x : 0, first + step < count ? v.y : 0, first + 2 * step < count ? v.z : 0,
                  first + 3 * step < count ? v.w : 0);
}

// As above.
INLINE float sum_of_values(const Weight w, long n, __global const STYPE(TYPE) *x) {
  const int step = ALTERNATING ? 2 : 1;  // between elements of a run
  float4 sum = (float4)(0);
  ROLLED for (long k = 0; k < w.k; k += UNIT) {
    Packed a;
    LOAD_PACKED(w, n, k, &a);
    UNROLL for (int s = 0; s < SPANS; ++s) EACH_STEP for (int i = 0; i < SPAN_STEPS; ++i) {
      const int place = s * SPAN_STEPS + i, run = TURNED ? s * SPAN_STEPS : place;
      const float8 of_x = factors_before(x, k, place, w.k);
      float4 first = value4(NUMBERS(w, &a, FIRST_RUN(run)), &a, s);
      float4 second = value4(NUMBERS(w, &a, SECOND_RUN(run)), &a, s);
#if !WHOLE
      first = cut4(first, 8 * place, step, w.k - k);
      second = cut4(second, 8 * place + (ALTERNATING ? 1 : 4), step, w.k - k);
#endif
      turn(&a);
      sum = fma(second, of_x.hi, fma(first, of_x.lo, sum));
    }
  }
  return sum.x + sum.y + (sum.z + sum.w);
}
#endif

// The result of a row of x and row n of the weight.
INLINE float finished(float sum, const Weight w, long n, __global const STYPE(TYPE) *x,
                      __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  if (!isfinite(sum)) sum = sum_of_values(w, n, x);
#if HAS_BIAS
  sum += (float)LOAD(TYPE, AT_CONST(TYPE, bias_base, bias_offset), n * p.bias_step);
#endif
  return sum;
}
#endif
