// What the products of a matrix in compressed rows share: the entries of a row, and how their products are
// joined. REDUCE: 0 sum, 1 mean, 2 amax, 3 amin. I: the type of indices.
#ifndef OCLTENSOR_CSR_H
#define OCLTENSOR_CSR_H
#include "faults.h"
#include "csr_params.h"

// The first entry of a row, or of the row after it; never outside the entries, whatever is stored.
INLINE long entry_of(__global const void *start_base, ulong start_offset, long row, const CsrParams p) {
  return clamp((long)AT_CONST(I, start_base, start_offset)[row], 0L, (long)p.entries);
}

// Reports entries that are in no row: those of a coordinate outside the matrix.
INLINE void check_rows(__global const void *start_base, ulong start_offset, FAULT_PARAMETERS,
                       const CsrParams p) {
  __global const STYPE(I) *start = AT_CONST(I, start_base, start_offset);
  if (start[0] != 0) report_fault(faults, fault_site, -(long)start[0], p.entries);
  if (start[p.rows] != p.entries) report_fault(faults, fault_site, p.entries, start[p.rows]);
}

// Whether a column is one of the other matrix's rows; another one is reported, and its entry does not count.
INLINE bool is_row(long column, FAULT_PARAMETERS, const CsrParams p) {
  if (column >= 0 && column < p.inner) return true;
  report_fault(faults, fault_site, column, p.inner);
  return false;
}

// A row without entries is 0. NaN is larger and smaller than any number.
#if REDUCE < 2
#define JOINED_FROM 0
#define JOIN(sum, v, m) sum = MULTIPLY_ADD(v, m, sum)
#define JOIN16(sum, v, m) sum = MULTIPLY_ADD(v, m, sum)
#else
#if REDUCE == 2
#define JOINED_FROM (-INFINITY)
#define BEYOND isgreater
#else
#define JOINED_FROM INFINITY
#define BEYOND isless
#endif
#define JOIN(best, v, m)                                                \
  {                                                                     \
    const acc_t product = (v) * (m);                                    \
    if (BEYOND(product, best) || isnan(product)) best = product;        \
  }
#define JOIN16(best, v, m)                                                            \
  {                                                                                   \
    const acc16_t product = (v) * (m);                                                \
    best = select(best, product, BEYOND(product, best) | isnan(product));             \
  }
#endif
#endif
