// Copies that swap dimensions, for GPUs: dimension 0 is contiguous in the target, dimension 1 in the source.
// A work-group turns a block of both dimensions in local memory, so that adjacent items read and write
// adjacent elements.
// Defines: TYPE, an integer type of 1, 2, 4 or 8 bytes, because elements are only moved; BLOCK, elements of a
// block's edge; ROWS, work-items along the other edge.
#include "pointwise_params.h"
#include "quotient.h"
#include "types.h"

__attribute__((reqd_work_group_size(BLOCK, ROWS, 1)))
__kernel void transpose_gpu(__global void *out_base, ulong out_offset, __global const void *in_base,
                            ulong in_offset, const PointwiseParams p) {
  __local STYPE(TYPE) block[BLOCK][BLOCK + 1];  // columns are in different banks
  const int item = get_local_id(0);
  const long a0 = get_group_id(0) * (long)BLOCK, b0 = get_group_id(1) * (long)BLOCK;
  const long a_end = p.sizes[0], b_end = p.sizes[1];
  __global STYPE(TYPE) *out = AT(TYPE, out_base, out_offset);
  __global const STYPE(TYPE) *in = AT_CONST(TYPE, in_base, in_offset);
  long rest = get_group_id(2);
  EACH_AXIS(k, 2, p.rank, POINTWISE_RANK) {
    const long next = QUOTIENT(ulong, rest, k), at = rest - next * p.sizes[k];
    rest = next;
    out += at * p.strides[0][k];
    in += at * p.strides[1][k];
  }
  for (int row = get_local_id(1); row < BLOCK; row += ROWS)
    if (a0 + row < a_end && b0 + item < b_end)
      block[row][item] = in[(a0 + row) * p.strides[1][0] + b0 + item];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int row = get_local_id(1); row < BLOCK; row += ROWS)
    if (b0 + row < b_end && a0 + item < a_end)
      out[(b0 + row) * p.strides[0][1] + a0 + item] = block[item][row];
}
