// A matrix in compressed rows times a row-major matrix, for CPU drivers: a work-item takes rows, and goes
// through the entries of a row for some vectors of 16 columns at a time. Defines: TYPE, FLOATING, WIDE
// (accumulator.h), I, REDUCE (csr.h).
#include "accumulator.h"
#include "csr.h"

#define VECTORS 4

// What is left to do with the joined products of a row.
#if REDUCE == 1
#define FINISH(v) ((v) / count)
#else
#define FINISH(v) (v)
#endif

// `vectors` vectors of columns from column c on, of a row whose entries are e0 .. e1.
#define JOIN_VECTORS(vectors)                                                                            \
  {                                                                                                      \
    acc16_t sum[vectors];                                                                                \
    UNROLL for (int k = 0; k < vectors; ++k) sum[k] = (acc16_t)(e0 < e1 ? JOINED_FROM : 0);              \
    for (long e = e0; e < e1; ++e) {                                                                     \
      const long column = index[e];                                                                      \
      if (!is_row(column, faults, fault_site, p)) continue;                                              \
      const acc16_t v = (acc16_t)(ACC(LOAD(TYPE, values, e)));                                           \
      __global const STYPE(TYPE) *m = mat + column * p.columns + c;                                      \
      UNROLL for (int k = 0; k < vectors; ++k) JOIN16(sum[k], v, ACC16(LOAD16(TYPE, m, 16 * k)));        \
    }                                                                                                    \
    UNROLL for (int k = 0; k < vectors; ++k) STORE16(TYPE, out, c + 16 * k, TO16(TYPE, FINISH(sum[k]))); \
  }

// A product with a vector: the sum stays in a register.
INLINE void one_column(__global STYPE(TYPE) *out, __global const STYPE(TYPE) *values,
                       __global const STYPE(I) *index, __global const STYPE(TYPE) *mat, long e0, long e1,
                       FAULT_PARAMETERS, const CsrParams p) {
  const acc_t count = max(e1 - e0, 1L);
  acc_t sum = e0 < e1 ? JOINED_FROM : 0;
  for (long e = e0; e < e1; ++e) {
    const long column = index[e];
    if (!is_row(column, faults, fault_site, p)) continue;
    JOIN(sum, ACC(LOAD(TYPE, values, e)), ACC(LOAD(TYPE, mat, column)));
  }
  STORE(TYPE, out, 0, TO(TYPE, FINISH(sum)));
}

// Rows of less than a vector.
INLINE void few_columns(__global STYPE(TYPE) *out, __global const STYPE(TYPE) *values,
                        __global const STYPE(I) *index, __global const STYPE(TYPE) *mat, long e0, long e1,
                        FAULT_PARAMETERS, const CsrParams p) {
  const acc_t count = max(e1 - e0, 1L);
  acc_t sum[16];
  for (long c = 0; c < p.columns; ++c) sum[c] = e0 < e1 ? JOINED_FROM : 0;
  for (long e = e0; e < e1; ++e) {
    const long column = index[e];
    if (!is_row(column, faults, fault_site, p)) continue;
    const acc_t v = ACC(LOAD(TYPE, values, e));
    for (long c = 0; c < p.columns; ++c) JOIN(sum[c], v, ACC(LOAD(TYPE, mat, column * p.columns + c)));
  }
  for (long c = 0; c < p.columns; ++c) STORE(TYPE, out, c, TO(TYPE, FINISH(sum[c])));
}

ONE_ITEM __kernel void csr_mm(__global void *out_base, ulong out_offset, __global const void *values_base,
                              ulong values_offset, __global const void *start_base, ulong start_offset,
                              __global const void *index_base, ulong index_offset,
                              __global const void *mat_base, ulong mat_offset, FAULT_PARAMETERS,
                              const CsrParams p) {
  __global const STYPE(TYPE) *values = AT_CONST(TYPE, values_base, values_offset);
  __global const STYPE(TYPE) *mat = AT_CONST(TYPE, mat_base, mat_offset);
  __global const STYPE(I) *index = AT_CONST(I, index_base, index_offset);
  const long r0 = get_global_id(0) * p.per_item, r1 = min((long)p.pieces, r0 + (long)p.per_item);
  if (r0 == 0) check_rows(start_base, start_offset, faults, fault_site, p);
  for (long row = r0; row < r1; ++row) {
    __global STYPE(TYPE) *out = AT(TYPE, out_base, out_offset) + row * p.columns;
    const long e0 = entry_of(start_base, start_offset, row, p);
    const long e1 = entry_of(start_base, start_offset, row + 1, p);
    if (p.columns == 1) {
      one_column(out, values, index, mat, e0, e1, faults, fault_site, p);
      continue;
    }
    if (p.columns < 16) {
      few_columns(out, values, index, mat, e0, e1, faults, fault_site, p);
      continue;
    }
    const acc_t count = max(e1 - e0, 1L);
    long c = 0;
    for (; c + 16 * VECTORS <= p.columns; c += 16 * VECTORS) JOIN_VECTORS(VECTORS)
    for (; c + 16 <= p.columns; c += 16) JOIN_VECTORS(1)
    if (c < p.columns) {  // the last vector overlaps the one before, with the same results
      c = p.columns - 16;
      JOIN_VECTORS(1)
    }
  }
}
