// The last step of a product whose sums over k were made in pieces: adds the pieces in their order. One work-item: a result.
// Defines: TYPE; HAS_S; GUARDED (1: unless a word in memory has the value `stop`).
// c as in the product; `pieces` matrices of m x n floats for each of the batch, all of the first piece first.
#include "matmul_params.h"
#include "types.h"

__kernel void matmul_sum_pieces(__global void *c_base, ulong c_offset, __global const void *pieces_base, ulong pieces_offset,
                                __global const void *s_base, ulong s_offset, __global const void *stop_base, ulong stop_offset,
                                uint stop, int pieces, const MatmulParams p) {
#if GUARDED
  if (*(__global const uint *)((__global const char *)stop_base + stop_offset) == stop) return;
#endif
  const long n = get_global_id(0), m = get_global_id(1), z = get_global_id(2);
  if (n >= p.n) return;
  const long size = p.m * p.n, step = size * get_global_size(2);
  __global const float *from = (__global const float *)((__global const char *)pieces_base + pieces_offset) + z * size + m * p.n + n;
  float sum = from[0];
  for (int i = 1; i < pieces; ++i) sum += from[i * step];
  sum *= as_float((uint)p.alpha);
#if HAS_S
  __global const STYPE(TYPE) *s = AT_CONST(TYPE, s_base, s_offset) + z * p.s_batch;
  sum = fma(as_float((uint)p.beta), (float)LOAD(TYPE, s, m * p.s_row + n * p.s_col), sum);
#endif
  STORE(TYPE, AT(TYPE, c_base, c_offset) + z * p.c_batch, m * p.c_row + n, sum);
}
