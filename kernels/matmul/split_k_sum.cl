// The last step of a split-K product: adds the pieces' sums in a fixed order. A work-item computes a result;
// with LANES above 1, that many work-items of a group share one, through local memory.
// Defines: TYPE, FLOATING, WIDE (accumulator.h); RESULT; ADD_SELF (0, 1); those of epilogue.h; LANES; GUARDED
// (1: does nothing if a word in memory is `stop`). c is as in the product. The accumulators are `pieces`
// matrices of m x n for each of the batch: all matrices of the first piece first.
#include "accumulator.h"
#include "epilogue.h"

#define DEPTH 8  // pieces that are loaded at once

#if LANES > 1
__attribute__((reqd_work_group_size(LANES, 1, 1)))
#endif
__kernel void matmul_sum_pieces(__global void *c_base, ulong c_offset, __global const void *sums_base,
                                ulong sums_offset, __global const void *s_base, ulong s_offset,
                                SCALE_PARAMETERS __global const void *word_base, ulong word_offset, uint stop,
                                int pieces, const MatmulParams p) {
#if GUARDED
  if (*(__global const uint *)((__global const char *)word_base + word_offset) == stop) return;
#endif
  const long n = get_global_id(0) / LANES, m = get_global_id(1), z = get_global_id(2);
#if LANES == 1
  if (n >= p.n) return;
#endif
  const int lane = get_local_id(0) % LANES;
  const long size = p.m * p.n, step = size * get_global_size(2);
  __global const acc_t *from =
      (__global const acc_t *)((__global const char *)sums_base + sums_offset) + z * size + m * p.n + n;
  acc_t sum = 0;
  int i = lane;
  for (; i + (DEPTH - 1) * LANES < pieces; i += DEPTH * LANES) {
    acc_t v[DEPTH];
    UNROLL for (int j = 0; j < DEPTH; ++j) v[j] = from[(i + j * LANES) * step];
    UNROLL for (int j = 0; j < DEPTH; ++j) sum += v[j];
  }
  for (; i < pieces; i += LANES) sum += from[i * step];
#if LANES > 1
  __local acc_t shared[LANES];
  shared[lane] = sum;
  for (int far = LANES / 2; far > 0; far /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < far) shared[lane] += shared[lane + far];
  }
  if (lane > 0) return;
  sum = shared[0];
#endif
  const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, SCALE_ARGUMENTS z, p);
  STORE(RESULT, AT(RESULT, c_base, c_offset) + z * p.c_batch, m * p.c_row + n * p.c_col,
        TO(RESULT, ended(sum, m, n, end)));
}
