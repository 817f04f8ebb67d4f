// Variance or standard deviation (ROOT) of contiguous rows for GPUs, in one sweep: `lanes` work-items (a
// power of two) share a row of at most HELD elements a lane and keep it in registers. Differences are from
// the row's first element (from 0 if that is not finite), so that a mean far from 0 loses no digits and equal
// elements have a variance of exactly 0.
//   COMPUTE, A (input), OUT, MEAN (its type), MEANS: whether means are wanted; GROUP (work-group size)
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "lanes.h"

#define HELD 16
__attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void variance(
    __global const void *a_base, ulong a_offset, __global void *out_base, ulong out_offset,
    __global void *mean_base, ulong mean_offset, long rows, long n, long lanes_, ulong divisor) {
  __local T shared[GROUP];
  const uint id = get_local_id(0), lanes = lanes_, lane = id % lanes;
  const long row = (long)get_group_id(0) * (GROUP / lanes) + id / lanes;
  const uint end = row < rows ? n : 0;
  __global const STYPE(A) *in = AT_CONST(A, a_base, a_offset) + row * n;
  T x[HELD], sum = 0;
  UNROLL for (int k = 0; k < HELD; ++k)
    x[k] = lane + k * lanes < end ? TO(COMPUTE, LOAD(A, in, lane + k * lanes)) : 0;
  const T first = end > 0 ? TO(COMPUTE, LOAD(A, in, 0)) : (T)0,
          pivot = fabs(first) < (T)INFINITY ? first : (T)0;
  UNROLL for (int k = 0; k < HELD; ++k) {
    x[k] -= pivot;
    sum += lane + k * lanes < end ? x[k] : 0;
  }
  const T mean = sum_of_lanes(shared, sum, id, lane, lanes, 1) / (T)n;
  sum = 0;
  UNROLL for (int k = 0; k < HELD; ++k) sum += lane + k * lanes < end ? (x[k] - mean) * (x[k] - mean) : 0;
  const T variance = sum_of_lanes(shared, sum, id, lane, lanes, 1) / FROM_BITS(COMPUTE, divisor);
  if (lane != 0 || end == 0) return;
  STORE(OUT, AT(OUT, out_base, out_offset), row, TO(OUT, ROOT ? sqrt(variance) : variance));
#if MEANS
  STORE(MEAN, AT(MEAN, mean_base, mean_offset), row, TO(MEAN, pivot + mean));
#endif
}
