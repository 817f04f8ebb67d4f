// The values of a quantised weight: of rows from `first` on, of those that an index says (INDEXED; I: its
// type), or, where the layout is flat and rows are not of whole units, of elements from `first` on
// (ELEMENTS), which become a matrix of `k` columns. A work-item takes units. Defines: those of quantised.h;
// TYPE, INDEXED, I, ELEMENTS; GROUP_SIZE; VEC (of GPUs: at whose multiples results are stored).
#include "quantised.h"
#include "element_vectors.h"
#include "faults.h"
#include "range.h"

// Sixteen neighbours. GPUs take a vector that may lie anywhere apart, into stores of single elements.
INLINE void store_sixteen(__global STYPE(TYPE) *out, float16 v) {
#if CPU_STYLE
  STORE16(TYPE, out, 0, TO16(TYPE, v));
#else
  float lane[16];
  vstore16(v, 0, lane);
  UNROLL for (int i = 0; i < 16; i += VEC) STOREV(TYPE, out, i, lane + i);
#endif
}

// Stores elements `from` to `to` of a unit, whose first one belongs at `out`.
INLINE void store_unit(__global STYPE(TYPE) *out, const float16 *v, int from, int to) {
  if (from > 0 || to < UNIT) {
    float lane[UNIT];
    UNROLL for (int i = 0; i < VECTORS; ++i) vstore16(v[i], i, lane);
    EACH_ELEMENT for (int i = 0; i < UNIT; ++i)
      if (UNIT_PLACE(i) >= from && UNIT_PLACE(i) < to) STORE(TYPE, out, UNIT_PLACE(i), TO(TYPE, lane[i]));
    return;
  }
#if ALTERNATING
  UNROLL for (int i = 0; i < VECTORS; i += 2) {
    float16 a, b;
    a.even = v[i].lo;
    a.odd = v[i + 1].lo;
    b.even = v[i].hi;
    b.odd = v[i + 1].hi;
    store_sixteen(out + 16 * i, a);
    store_sixteen(out + 16 * i + 16, b);
  }
#else
  UNROLL for (int i = 0; i < VECTORS; ++i) store_sixteen(out + 16 * i, v[i]);
#endif
}

GROUP __kernel void unpack(__global void *out_base, ulong out_offset, __global const void *weight_base,
                           ulong weight_offset, __global const void *scale_base, ulong scale_offset,
                           __global const void *zero_base, ulong zero_offset,
                           __global const void *index_base, ulong index_offset, FAULT_PARAMETERS,
                           const QuantisedParams p) {
  Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  SHARE_CODES(w)
  __global STYPE(TYPE) *out = AT(TYPE, out_base, out_offset);
  const long units = (p.k + UNIT - 1) / UNIT;
  FOR_EACH(i, p.pieces, p.per_item) {
    float16 v[VECTORS];
#if ELEMENTS
    const long e = (p.first / UNIT + i) * UNIT, at = e - p.first;
    unit_values(w, 0, e, v);
    store_unit(out + at, v, (int)max(0L, -at), (int)min((long)UNIT, p.m * p.k - at));
#else
    const long line = i / units, k = (i - line * units) * UNIT;
    long n = p.first + line;
#if INDEXED
    n = AT_CONST(I, index_base, index_offset)[line];
    if (n < 0 || n >= p.n) {
      if (k == 0) report_fault(faults, fault_site, n, p.n);
      n = 0;
    }
#endif
    unit_values(w, n, k, v);
    store_unit(out + line * p.k + k, v, 0, WHOLE ? UNIT : (int)min((long)UNIT, p.k - k));
#endif
  }
}
