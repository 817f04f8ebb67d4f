// Adds a piece's sums, which are integers in float32, to those of the product of int8. Define: ADDS (0: the
// piece is the first).
#include "types.h"
#include "matmul_params.h"

__kernel void matmul_int8_add(__global void *c_base, ulong c_offset, __global const void *sums_base,
                              ulong sums_offset, const MatmulParams p) {
  const ulong i = get_global_id(0), m = i / p.n, n = i % p.n;
  if (m >= (ulong)p.m) return;
  __global int *c = AT(i32, c_base, c_offset) + m * p.c_row + n * p.c_col;
  const int sum = convert_int(AT_CONST(f32, sums_base, sums_offset)[i]);
#if ADDS
  *c += sum;
#else
  *c = sum;
#endif
}
