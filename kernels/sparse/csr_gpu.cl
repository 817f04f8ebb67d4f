// A matrix in compressed rows times a row-major matrix, for GPUs: a work-item takes an element of the result,
// so that neighbouring ones read neighbouring columns of the same entries. Defines: TYPE, FLOATING, WIDE
// (accumulator.h), I, REDUCE (csr.h).
#include "accumulator.h"
#include "range.h"
#include "csr.h"

__kernel void csr_mm(__global void *out_base, ulong out_offset, __global const void *values_base,
                     ulong values_offset, __global const void *start_base, ulong start_offset,
                     __global const void *index_base, ulong index_offset, __global const void *mat_base,
                     ulong mat_offset, FAULT_PARAMETERS, const CsrParams p) {
  __global const STYPE(TYPE) *values = AT_CONST(TYPE, values_base, values_offset);
  __global const STYPE(I) *index = AT_CONST(I, index_base, index_offset);
  FOR_EACH(i, p.pieces, p.per_item) {
    if (i == 0) check_rows(start_base, start_offset, faults, fault_site, p);
    const long row = i / p.columns;
    __global const STYPE(TYPE) *mat = AT_CONST(TYPE, mat_base, mat_offset) + (i - row * p.columns);
    const long e0 = entry_of(start_base, start_offset, row, p);
    const long e1 = entry_of(start_base, start_offset, row + 1, p);
    acc_t sum = e0 < e1 ? JOINED_FROM : 0;
    for (long e = e0; e < e1; ++e) {
      const long column = index[e];
      if (!is_row(column, faults, fault_site, p)) continue;
      JOIN(sum, ACC(LOAD(TYPE, values, e)), ACC(LOAD(TYPE, mat, column * p.columns)));
    }
#if REDUCE == 1
    sum /= max(e1 - e0, 1L);
#endif
    STORE(TYPE, AT(TYPE, out_base, out_offset), i, TO(TYPE, sum));
  }
}
