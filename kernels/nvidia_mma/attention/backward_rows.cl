// The statistics of every query for attention's backward by mma.sync, in pairs: its log-sum-exp in the units
// of LOG_WEIGHT (attention_lanes.h), +infinity if there is no such query or it sees no key; and delta, the
// sum of the result times its gradient, times p.kept, so that the gradients of weights need no factor for
// dropout. Heads have p.padded rows. LANES work-items share a row. Defines: TYPE, LANES, GROUP_SIZE.
#include "types.h"
typedef float T;
#include "attention_mma_backward_params.h"
#include "lanes.h"

__attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))
__kernel void attention_mma_rows(__global void *rows_base, ulong rows_offset, __global const void *sums_base,
                                 ulong sums_offset, __global const void *out_base, ulong out_offset,
                                 __global const void *grad_base, ulong grad_offset,
                                 const AttentionMmaRowsParams p) {
  __local float shared[GROUP_SIZE];
  const int id = get_local_id(0), lane = id % LANES;
  const int tiles = (int)p.padded / (GROUP_SIZE / LANES);
  const long head = get_group_id(0) / tiles, batch = head / p.heads, in_batch = head % p.heads;
  const int row = get_group_id(0) % tiles * (GROUP_SIZE / LANES) + id / LANES;
  float delta = 0.0f;
  if (row < p.queries) {
    __global const STYPE(TYPE) *out =
        AT_CONST(TYPE, out_base, out_offset) + batch * p.out.batch + in_batch * p.out.head + row * p.out.row;
    __global const STYPE(TYPE) *grad = AT_CONST(TYPE, grad_base, grad_offset) + batch * p.grad.batch +
                                       in_batch * p.grad.head + row * p.grad.row;
    for (int i = lane; i < p.width; i += LANES) delta = fma(LOAD(TYPE, out, i), LOAD(TYPE, grad, i), delta);
  }
  delta = sum_of_lanes(shared, delta, id, lane, LANES, 1);
  if (lane != 0) return;
  const float lse =
      row < p.queries ? AT_CONST(f32, sums_base, sums_offset)[head * p.queries + row] : -INFINITY;
  ((__global float2 *)((__global char *)rows_base + rows_offset))[head * p.padded + row] =
      (float2)(lse == -INFINITY ? INFINITY : lse * as_float((uint)p.unit), delta * as_float((uint)p.kept));
}
