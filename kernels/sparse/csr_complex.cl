// The sum of csr_cpu.cl and csr_gpu.cl for complex numbers: a work-item takes tiles of TILE columns of a row.
// TYPE, PART (complex.h), I, TILE.
#define REDUCE 0
#include "complex.h"
#include "range.h"
#include "csr.h"

GROUP __kernel void csr_mm(__global void *out_base, ulong out_offset, __global const void *values_base,
                           ulong values_offset, __global const void *start_base, ulong start_offset,
                           __global const void *index_base, ulong index_offset, __global const void *mat_base,
                           ulong mat_offset, FAULT_PARAMETERS, const CsrParams p) {
  __global const STYPE(TYPE) *values = AT_CONST(TYPE, values_base, values_offset);
  __global const STYPE(TYPE) *mat = AT_CONST(TYPE, mat_base, mat_offset);
  __global STYPE(TYPE) *out = AT(TYPE, out_base, out_offset);
  __global const STYPE(I) *index = AT_CONST(I, index_base, index_offset);
  const long tiles = (p.columns + TILE - 1) / TILE;
  FOR_EACH(i, p.pieces, p.per_item) {
    if (i == 0) check_rows(start_base, start_offset, faults, fault_site, p);
    const long row = i / tiles, c0 = (i - row * tiles) * TILE;
    const int width = min((long)TILE, p.columns - c0);
    const long e1 = entry_of(start_base, start_offset, row + 1, p);
    cplx sum[TILE];
    for (int k = 0; k < TILE; ++k) sum[k] = Z(0, 0);
    for (long e = entry_of(start_base, start_offset, row, p); e < e1; ++e) {
      const long column = index[e];
      if (!is_row(column, faults, fault_site, p)) continue;
      const cplx v = CLOAD(TYPE, values, e);
      for (int k = 0; k < width; ++k) sum[k] += cmul(v, CLOAD(TYPE, mat, column * p.columns + c0 + k));
    }
    for (int k = 0; k < width; ++k) CSTORE(TYPE, out, row * p.columns + c0 + k, sum[k]);
  }
}
