// The gradient of the query from the sums that attention backward on Hopper's matrix units leaves when it
// goes through all operands once (backward.cl, PASS 2): times the scale, in the query's type. The sums
// are in the order of that kernel's accumulators: of each BN rows, each of two warpgroups has SUMS of an
// item's floats. A work-group takes what one of the two warpgroups had. Defines: TYPE, DEPTH, BN.
#define CAUSAL 0  // these play no part here
#define MASK 0
#define MASK_TILES 0
#define DROPOUT 0
#include "attention_hopper.h"

#define SUMS (BN * DEPTH / 256)
#define COLUMNS (SUMS * 2)  // of a warpgroup's 64 rows

__attribute__((reqd_work_group_size(128, 1, 1)))
__kernel void attention_hopper_query(__global void *out_base, ulong out_offset,
                                     __global const void *sums_base, ulong sums_offset,
                                     const AttentionHopperQueryParams p) {
  const int item = get_local_id(0), lane = item & 31, quarter = lane & 3;
  const int block = get_group_id(0) >> 1, warpgroup = get_group_id(0) & 1;
  const long head = get_group_id(1), batch = head / p.heads, in_batch = head % p.heads;
  __global const float *sums = AT_CONST(f32, sums_base, sums_offset) + (head * p.padded + block * BN) * DEPTH;
  __global const float4 *from = (__global const float4 *)sums + warpgroup * (SUMS * 32) + item;
  float d[SUMS];
  UNROLL for (int i = 0; i < SUMS; i += 4) {
    const float4 v = from[i / 4 * 128];
    d[i] = v.x;
    d[i + 1] = v.y;
    d[i + 2] = v.z;
    d[i + 3] = v.w;
  }
  const int row = block * BN + (BN == 128 ? warpgroup * 64 : 0) + (item >> 5) * 16 + (lane >> 2),
            first = BN == 128 ? 0 : warpgroup * COLUMNS;
  __global ushort *out = AT(u16, out_base, out_offset) + batch * p.out.batch + in_batch * p.out.head + first;
  UNROLL for (int h = 0; h < 2; ++h) {
    const int r = row + h * 8;
    STORE_COLUMNS(d, as_float((uint)p.scale), COLUMNS, (int)p.depth - first, out + r * p.out.row,
                  r < (int)p.queries)
  }
}
