// A matrix in compressed rows of float32 times a row-major matrix of a multiple of 4 columns, for GPUs: a
// work-item takes four columns of a row, and reads four entries at once. Defines: TYPE, FLOATING, WIDE
// (accumulator.h), I, REDUCE (csr.h).
#include "accumulator.h"
#include "range.h"
#include "csr.h"
#define AT_ONCE 4

__kernel void csr_mm(__global void *out_base, ulong out_offset, __global const void *values_base,
                     ulong values_offset, __global const void *start_base, ulong start_offset,
                     __global const void *index_base, ulong index_offset, __global const void *mat_base,
                     ulong mat_offset, FAULT_PARAMETERS, const CsrParams p) {
  __global const float *values = AT_CONST(f32, values_base, values_offset);
  __global const STYPE(I) *index = AT_CONST(I, index_base, index_offset);
  const long quads = p.columns / 4;
  FOR_EACH(i, p.pieces, p.per_item) {
    if (i == 0) check_rows(start_base, start_offset, faults, fault_site, p);
    const long row = i / quads;
    __global const float4 *mat =
        (__global const float4 *)AT_CONST(f32, mat_base, mat_offset) + (i - row * quads);
    const long e0 = entry_of(start_base, start_offset, row, p);
    const long e1 = entry_of(start_base, start_offset, row + 1, p);
    float4 sum = e0 < e1 ? JOINED_FROM : 0;
    for (long e = e0; e < e1; e += AT_ONCE) {
      float4 read[AT_ONCE];
      float value[AT_ONCE];
      bool valid[AT_ONCE];
      UNROLL for (int k = 0; k < AT_ONCE; ++k) {
        const long column = e + k < e1 ? (long)index[e + k] : 0;
        valid[k] = e + k < e1 && is_row(column, faults, fault_site, p);
        value[k] = valid[k] ? values[e + k] : 0;
        read[k] = mat[valid[k] ? column * quads : 0];
      }
      UNROLL for (int k = 0; k < AT_ONCE; ++k) {
        if (!valid[k]) continue;
        JOIN(sum.x, value[k], read[k].x);
        JOIN(sum.y, value[k], read[k].y);
        JOIN(sum.z, value[k], read[k].z);
        JOIN(sum.w, value[k], read[k].w);
      }
    }
#if REDUCE == 1
    sum /= (float)max(e1 - e0, 1L);
#endif
    ((__global float4 *)AT(f32, out_base, out_offset))[i] = sum;
  }
}
