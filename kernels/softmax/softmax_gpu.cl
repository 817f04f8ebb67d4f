// softmax and log-softmax (LOG) of [outer, n, inner] for GPUs: `lanes` work-items (a power of two) share a
// row; adjacent work-items take adjacent elements of the input. A row of at most 16 elements per lane is read
// once and held in registers (softmax_held); a longer one is read twice: the first time computes the maximum
// and the sum together, and rescales the sum when the maximum grows (softmax).
//   COMPUTE, A (input), OUT, GROUP (work-group size); UNIT: rows are contiguous (saves a 64-bit product per
//   element)
#include "nest_params.h"
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "lanes.h"
#ifdef UNIT
#define INNER 1
typedef uint Place;
#else
#define INNER s.inner
typedef long Place;
#endif

#define PROLOGUE                                                                                           \
  __local T shared[GROUP];                                                                                 \
  const uint id = get_local_id(0), lanes = lanes_, rows = GROUP / lanes;                                   \
  const uint lane = INNER == 1 ? id % lanes : id / rows, step = INNER == 1 ? 1 : rows;                     \
  const long row = (long)get_group_id(0) * rows + (INNER == 1 ? id / lanes : id % rows);                   \
  const bool active = row < s.outer * INNER;                                                               \
  const long n = s.n, o = row / INNER, start = o * n * INNER + (row - o * INNER);                          \
  __global const STYPE(A) *in = AT_CONST(A, a_base, a_offset) + start;                                     \
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + start;

#define HELD 16
__attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void softmax_held(
    __global const void *a_base, ulong a_offset, __global void *out_base, ulong out_offset,
    const NestParams s, long lanes_) {
  PROLOGUE
  T x[HELD], top = -INFINITY, sum = 0;
  UNROLL for (int k = 0; k < HELD; ++k) {
    const Place i = lane + k * lanes;
    x[k] = active && i < n ? LOAD(A, in, i * INNER) : -INFINITY;
  }
  UNROLL for (int k = 0; k < HELD; ++k) top = x[k] > top ? x[k] : top;
  top = max_of_lanes(shared, top, id, lane, lanes, step);
  T e[HELD];
  UNROLL for (int k = 0; k < HELD; ++k) {
    const bool inside = lane + k * lanes < n;
    e[k] = inside ? exp(x[k] - top) : 0;
    sum += e[k];
  }
  sum = sum_of_lanes(shared, sum, id, lane, lanes, step);
  const T last = LOG ? log(sum) : (T)1 / sum;
  if (!active) return;
  UNROLL for (int k = 0; k < HELD; ++k) {
    const Place i = lane + k * lanes;
    if (i < n) STORE(OUT, out, i * INNER, LOG ? x[k] - top - last : e[k] * last);
  }
}

__attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void softmax(
    __global const void *a_base, ulong a_offset, __global void *out_base, ulong out_offset,
    const NestParams s, long lanes_) {
  PROLOGUE
  T top = -INFINITY, sum = 0;
  if (active) {
    for (long i = lane; i < n; i += 4 * lanes) {
      T x[4], peak = top;
      UNROLL for (int k = 0; k < 4; ++k)
        x[k] = i + k * lanes < n ? LOAD(A, in, (i + k * lanes) * INNER) : -INFINITY;
      UNROLL for (int k = 0; k < 4; ++k) peak = x[k] > peak ? x[k] : peak;
      // While all elements are -inf, the sum stays 0. A NaN is added to the sum below.
      const T shift = peak == -INFINITY ? 0 : peak;
      sum *= exp(top - shift);
      UNROLL for (int k = 0; k < 4; ++k) sum += i + k * lanes < n ? exp(x[k] - shift) : 0;
      top = peak;
    }
  }
  const T peak = max_of_lanes(shared, top, id, lane, lanes, step);
  sum = sum_of_lanes(shared, top == -INFINITY ? sum : sum * exp(top - peak), id, lane, lanes, step);
  const T last = LOG ? log(sum) : (T)1 / sum;
  if (!active) return;
  for (long i = lane; i < n; i += lanes) {
    const T x = LOAD(A, in, i * INNER) - peak;
    STORE(OUT, out, i * INNER, LOG ? x - last : exp(x) * last);
  }
}
