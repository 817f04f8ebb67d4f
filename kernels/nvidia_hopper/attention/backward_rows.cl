// What attention backward on Hopper's matrix units needs before it begins: the statistics of every query,
// that is its log-sum-exp in the units of LOG_WEIGHT (attention_lanes.h), +infinity if there is no such query
// or it attends to no key, and delta, the sum of the result times its gradient, times a factor, which
// gradients of scores then have, too; zeros in the sums of the query's gradient, if there are any, and in
// two counters of tiles. DEPTH / 8 items take a row; heads have p.padded rows. For each 64 rows there are 64
// sums, then 64 deltas. Defines: TYPE f16 or bf16, DEPTH 64 or 128.
#include "attention_hopper_params.h"
#include "hopper.h"
#define VEC 8
#include "element_vectors.h"

#define ITEMS 256
#define LANES (DEPTH / 8)

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_hopper_rows(__global void *rows_base, ulong rows_offset,
                                    __global void *query_sums_base, ulong query_sums_offset,
                                    __global void *counters_base, ulong counters_offset,
                                    __global const void *sums_base, ulong sums_offset,
                                    __global const void *out_base, ulong out_offset,
                                    __global const void *grad_base, ulong grad_offset,
                                    const AttentionHopperRowsParams p) {
  const int item = get_local_id(0), lane = item % LANES, column = lane * 8;
  const int row = get_group_id(0) * (ITEMS / LANES) + item / LANES;
  const long head = get_group_id(1), batch = head / p.heads, in_batch = head % p.heads;
  if (get_global_id(0) < 2 && head == 0) AT(u32, counters_base, counters_offset)[item] = 0;
  if (p.with_query) {
    __global float4 *sums = (__global float4 *)(AT(f32, query_sums_base, query_sums_offset) +
                                                (head * p.padded + row) * DEPTH + column);
    sums[0] = sums[1] = (float4)(0.0f);
  }
  float delta = 0.0f;
  if (row < p.queries && column < p.depth) {
    __global const STYPE(TYPE) *out = AT_CONST(TYPE, out_base, out_offset) + batch * p.out.batch +
                                      in_batch * p.out.head + row * p.out.row;
    __global const STYPE(TYPE) *grad = AT_CONST(TYPE, grad_base, grad_offset) + batch * p.grad.batch +
                                       in_batch * p.grad.head + row * p.grad.row;
    float o[8], g[8];
    LOADV(TYPE, out, column, o);
    LOADV(TYPE, grad, column, g);
    UNROLL for (int i = 0; i < 8; ++i) delta = fma(o[i], g[i], delta);
  }
  UNROLL for (uint i = LANES / 2; i != 0; i >>= 1) delta += from_neighbour_float(delta, i);
  if (lane == 0) {
    const float lse =
        row < p.queries ? AT_CONST(f32, sums_base, sums_offset)[head * p.queries + row] : -INFINITY;
    __global float *to = AT(f32, rows_base, rows_offset) + 2 * (head * p.padded + (row & ~63)) + (row & 63);
    to[0] = lse == -INFINITY ? INFINITY : lse * as_float((uint)p.unit);
    to[64] = delta * as_float((uint)p.delta_factor);
  }
}
