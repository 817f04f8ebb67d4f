// The statistics of every query for attention backward on Hopper's matrix units: its log-sum-exp times
// log2(e) (weights are 2^(score - that)), +infinity if there is no such query or it attends to no key; and
// delta, the sum of the result times its gradient. A warp takes a row; heads have p.padded rows. For each 64
// rows there are 64 sums, then 64 deltas. Defines: TYPE.
#include "attention_hopper_params.h"
#include "hopper.h"

__attribute__((reqd_work_group_size(128, 1, 1)))
__kernel void attention_hopper_rows(__global void *rows_base, ulong rows_offset,
                                    __global const void *sums_base, ulong sums_offset,
                                    __global const void *out_base, ulong out_offset,
                                    __global const void *grad_base, ulong grad_offset,
                                    const AttentionHopperRowsParams p) {
  const int lane = get_local_id(0) & 31, row = get_group_id(0) * 4 + (get_local_id(0) >> 5);
  const long head = get_group_id(1), batch = head / p.heads, in_batch = head % p.heads;
  float delta = 0.0f;
  if (row < p.queries) {
    __global const STYPE(TYPE) *out =
        AT_CONST(TYPE, out_base, out_offset) + batch * p.out.batch + in_batch * p.out.head + row * p.out.row;
    __global const STYPE(TYPE) *grad = AT_CONST(TYPE, grad_base, grad_offset) + batch * p.grad.batch +
                                       in_batch * p.grad.head + row * p.grad.row;
    for (int i = lane; i < p.depth; i += 32) delta = fma(LOAD(TYPE, out, i), LOAD(TYPE, grad, i), delta);
  }
  for (uint i = 16; i != 0; i >>= 1) delta += from_neighbour_float(delta, i);
  if (lane == 0) {
    const float lse =
        row < p.queries ? AT_CONST(f32, sums_base, sums_offset)[head * p.queries + row] : -INFINITY;
    __global float *to = AT(f32, rows_base, rows_offset) + 2 * (head * p.padded + (row & ~63)) + (row & 63);
    to[0] = lse == -INFINITY ? INFINITY : lse * 1.44269504f;
    to[64] = delta;
  }
}
