// Backward of softmax and log-softmax (LOG) of long contiguous rows for GPUs; work division as in
// softmax_long_rows.cl. a: gradient, b: the forward's result. softmax_partial writes every chunk's sum,
// softmax_apply adds them up.
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "lanes.h"
#include "long_rows.h"

#define LOAD_CHUNK(x, X, p)                                                                                \
  T x[HELD];                                                                                               \
  UNROLL for (int k = 0; k < HELD; ++k) x[k] = IN_CHUNK(k) ? TO(COMPUTE, LOAD(X, p, PLACE(k))) : 0;

ROW_KERNEL void softmax_partial(__global const void *a_base, ulong a_offset, __global const void *b_base,
                                ulong b_offset, __global void *partial_base, ulong partial_offset, long n,
                                long pieces, long chunk) {
  CHUNK_OF_ROW
  __global const STYPE(A) *grad = AT_CONST(A, a_base, a_offset) + start;
  LOAD_CHUNK(g, A, grad)
  T sum = 0;
#if LOG
  UNROLL for (int k = 0; k < HELD; ++k) sum += g[k];
#else
  __global const STYPE(B) *result = AT_CONST(B, b_base, b_offset) + start;
  LOAD_CHUNK(y, B, result)
  UNROLL for (int k = 0; k < HELD; ++k) sum += g[k] * y[k];
#endif
  sum = sum_of_lanes(shared, sum, id, id, GROUP, 1);
  if (id == 0) AT(COMPUTE, partial_base, partial_offset)[group] = sum;
}

ROW_KERNEL void softmax_apply(__global const void *a_base, ulong a_offset, __global const void *b_base,
                              ulong b_offset, __global const void *partial_base, ulong partial_offset,
                              __global void *out_base, ulong out_offset, long n, long pieces, long chunk) {
  CHUNK_OF_ROW
  __global const STYPE(A) *grad = AT_CONST(A, a_base, a_offset) + start;
  __global const STYPE(B) *result = AT_CONST(B, b_base, b_offset) + start;
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + start;
  LOAD_CHUNK(g, A, grad)
  LOAD_CHUNK(y, B, result)
  __global const T *partials = AT_CONST(COMPUTE, partial_base, partial_offset) + row * pieces;
  T sum = 0;
  for (long s = id; s < pieces; s += GROUP) sum += partials[s];
  sum = sum_of_lanes(shared, sum, id, id, GROUP, 1);
  UNROLL for (int k = 0; k < HELD; ++k)
    if (IN_CHUNK(k)) STORE(OUT, out, PLACE(k), LOG ? g[k] - exp(y[k]) * sum : (g[k] - sum) * y[k]);
}
