// Backward of softmax and log-softmax (LOG) for GPUs; work division and UNIT as in softmax_gpu.cl. a:
// gradient, b: the forward's result.
#include "nest_params.h"
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "lanes.h"
#ifdef UNIT
#define INNER 1
#else
#define INNER s.inner
#endif

#define GRAD(i) TO(COMPUTE, LOAD(A, grad, i))
#define RESULT(i) TO(COMPUTE, LOAD(B, result, i))
__attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void softmax(
    __global const void *a_base, ulong a_offset, __global const void *b_base, ulong b_offset,
    __global void *out_base, ulong out_offset, const NestParams s, long lanes_) {
  __local T shared[GROUP];
  const uint id = get_local_id(0), lanes = lanes_, rows = GROUP / lanes;
  const uint lane = INNER == 1 ? id % lanes : id / rows, step = INNER == 1 ? 1 : rows;
  const long row = (long)get_group_id(0) * rows + (INNER == 1 ? id / lanes : id % rows);
  const bool active = row < s.outer * INNER;
  const long n = s.n, o = row / INNER, start = o * n * INNER + (row - o * INNER);
  __global const STYPE(A) *grad = AT_CONST(A, a_base, a_offset) + start;
  __global const STYPE(B) *result = AT_CONST(B, b_base, b_offset) + start;
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + start;
  T sum = 0;
  if (active)
    for (long i = lane; i < n; i += lanes) sum += LOG ? GRAD(i * INNER) : GRAD(i * INNER) * RESULT(i * INNER);
  sum = sum_of_lanes(shared, sum, id, lane, lanes, step);
  if (!active) return;
  for (long i = lane; i < n; i += lanes) {
    const T g = GRAD(i * INNER), y = RESULT(i * INNER);
    STORE(OUT, out, i * INNER, LOG ? g - exp(y) * sum : (g - sum) * y);
  }
}
