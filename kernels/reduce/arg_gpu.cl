// Extreme values and their positions for GPUs: `share` work-items (a power of two) share an output;
// adjacent work-items take adjacent elements of the input. GROUP is the work-group size; UNIT: rows are
// contiguous.
#include "arg_formula.h"
#ifdef UNIT
#define INNER 1
#else
#define INNER inner
#endif

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void arg(__global const void *a_base, ulong a_offset,
                                                                     ARG_OUTPUTS, long outer, long length,
                                                                     long inner, long chunk, long share) {
  __local Best shared[GROUP];
  const uint id = get_local_id(0), lanes = share, outputs = GROUP / lanes;
  const uint lane = INNER == 1 ? id % lanes : id / outputs;
  const uint step = INNER == 1 ? 1 : outputs;
  const long o = (long)get_group_id(0) * outputs + (INNER == 1 ? id / lanes : id % outputs);
  const long first = get_group_id(1) * chunk, end = min(length, first + chunk);
  const bool active = o < outer * INNER;
  if (active) {
    const long row = o / INNER;
    __global const STYPE(A) *in = AT_CONST(A, a_base, a_offset) + row * length * INNER + (o - row * INNER);
    const long start = min(first + lane, end - 1);  // a lane without elements repeats the last one
    Best best = {TO(COMPUTE, LOAD(A, in, start * INNER)), start};
    const long last = end - 1;
    // Four loads at once.
    for (long i = start + lanes; i < end; i += 4 * lanes) {
      T value[4];
      UNROLL for (int k = 0; k < 4; ++k)
        value[k] = TO(COMPUTE, LOAD(A, in, min(i + k * lanes, last) * INNER));
      UNROLL for (int k = 0; k < 4; ++k) {
        const Best one = {value[k], i + k * lanes};
        if (i + k * lanes < end && better(one.value, best.value)) best = one;
      }
    }
    shared[id] = best;
  }
  for (uint half_lanes = lanes / 2; half_lanes > 0; half_lanes /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (active && lane < half_lanes) shared[id] = choose(shared[id], shared[id + half_lanes * step]);
  }
  if (active && lane == 0) {
    const Best best = shared[id];
    WRITE(get_group_id(1) * outer * INNER + o, best)
  }
}
