// What products of a few rows of x with a quantised weight share: x beside a unit, and what a unit adds to
// sums. Defines: those of quantised.h; TYPE (of x, bias and result), ROWS (of x that a work-item takes),
// X_ALIGNED (rows of x begin at multiples of 16 bytes).
#ifndef OCLTENSOR_QUANTISED_X_H
#define OCLTENSOR_QUANTISED_X_H
#include "quantised.h"

// 16 elements of x as floats.
#if CPU_STYLE || !X_ALIGNED
#define LOAD_X(x, k) convert_float16(LOAD16(TYPE, x, k))
#else
#define LOAD_X(x, k) CAT(load_x_, TYPE)((__global const uint4 *)((x) + (k)))
INLINE float16 load_x_f32(__global const uint4 *x) {
  return (float16)(as_float4(x[0]), as_float4(x[1]), as_float4(x[2]), as_float4(x[3]));
}
INLINE float16 load_x_f16(__global const uint4 *x) {
  const uint4 a = x[0], b = x[1];
  return (float16)(vload_half8(0, (const half *)&a), vload_half8(0, (const half *)&b));
}
INLINE float8 eight_bf16(uint4 raw) {
  const uint4 low = raw << 16, high = raw & 0xffff0000u;
  return as_float8((uint8)(low.x, high.x, low.y, high.y, low.z, high.z, low.w, high.w));
}
INLINE float16 load_x_bf16(__global const uint4 *x) { return (float16)(eight_bf16(x[0]), eight_bf16(x[1])); }
#endif

// The elements of x beside a unit from k on, of which `count` exist and the others are 0, each where the
// unit's vectors have its factor.
INLINE void load_unit(__global const STYPE(TYPE) *x, long k, int count, float16 *v) {
  if (count >= UNIT) {
    UNROLL for (int i = 0; i < VECTORS; ++i) v[i] = LOAD_X(x, k + 16 * i);
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
  EACH_ELEMENT for (int i = 0; i < UNIT; ++i) lane[i] = PLACE(i) < count ? lane[i] : 0;
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

INLINE float with_bias(float sum, __global const void *bias_base, ulong bias_offset, long n,
                       const QuantisedParams p) {
#if HAS_BIAS
  sum += (float)LOAD(TYPE, AT_CONST(TYPE, bias_base, bias_offset), n * p.bias_step);
#endif
  return sum;
}
#endif
