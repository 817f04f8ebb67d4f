// A matrix in compressed rows times a row-major matrix of few columns, for GPUs: 16 work-items take an
// element of the result, so that they read neighbouring entries; what they have is joined in a fixed order.
// Defines: TYPE, FLOATING, WIDE (accumulator.h), I, REDUCE (csr.h).
#include "accumulator.h"
#include "csr.h"
#define TEAM 16
#define GROUP 256

#if REDUCE < 2
#define MERGE(sum, other) sum += other
#else
#define MERGE(best, other) \
  if (BEYOND(other, best) || isnan(other)) best = other
#endif

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void csr_mm(__global void *out_base, ulong out_offset, __global const void *values_base,
                     ulong values_offset, __global const void *start_base, ulong start_offset,
                     __global const void *index_base, ulong index_offset, __global const void *mat_base,
                     ulong mat_offset, FAULT_PARAMETERS, const CsrParams p) {
  __local acc_t partials[GROUP];
  __global const STYPE(TYPE) *values = AT_CONST(TYPE, values_base, values_offset);
  __global const STYPE(I) *index = AT_CONST(I, index_base, index_offset);
  const int id = get_local_id(0), lane = id % TEAM;
  const long i = (long)get_global_id(0) / TEAM, row = i / p.columns;
  const bool used = i < p.pieces;
  if (get_global_id(0) == 0) check_rows(start_base, start_offset, faults, fault_site, p);
  __global const STYPE(TYPE) *mat = AT_CONST(TYPE, mat_base, mat_offset) + (i - row * p.columns);
  const long e0 = used ? entry_of(start_base, start_offset, row, p) : 0;
  const long e1 = used ? entry_of(start_base, start_offset, row + 1, p) : 0;
  acc_t sum = e0 < e1 ? JOINED_FROM : 0;
  for (long e = e0 + lane; e < e1; e += TEAM) {
    const long column = index[e];
    if (!is_row(column, faults, fault_site, p)) continue;
    JOIN(sum, ACC(LOAD(TYPE, values, e)), ACC(LOAD(TYPE, mat, column * p.columns)));
  }
  partials[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane > 0 || !used) return;
  for (int k = 1; k < TEAM; ++k) MERGE(sum, partials[id + k]);
#if REDUCE == 1
  sum /= max(e1 - e0, 1L);
#endif
  STORE(TYPE, AT(TYPE, out_base, out_offset), i, TO(TYPE, sum));
}
