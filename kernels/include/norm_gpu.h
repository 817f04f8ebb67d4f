// What the kernels planes_gpu*.cl share: the loop over a work-item's vectors of a unit, in blocks that are
// loaded at once.
//   GROUP: work-group size; VEC: elements of a vector; INDEX: type of element counts (uint, or ulong from
//   2^31 on)
#ifndef OCLTENSOR_NORM_ELEMENTS_H
#define OCLTENSOR_NORM_ELEMENTS_H
#include "norm_elements_params.h"
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "element_vectors.h"
#include "lanes.h"
#include "norm_operands.h"

#define SIZED __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#if VEC >= 4
#define BLOCK 4
#else
#define BLOCK 8
#endif
#define EACH_VECTOR UNROLL for (int k = 0; k < BLOCK; ++k)
#define EACH_ELEMENT UNROLL for (int j = 0; j < VEC; ++j)

// This item's unit, its piece [first, end) of it, and its lane. Items past the last unit have no work (`here`
// is false), but take part in the barriers.
#define PLACE                                                                                 \
  __local T shared[GROUP];                                                                    \
  const uint id = get_local_id(0), lanes = p.lanes, lane = id % lanes;                        \
  const bool works = get_group_id(0) >= p.weight_groups;                                      \
  const INDEX group = works ? get_group_id(0) - p.weight_groups : 0;                          \
  const INDEX pieces = p.pieces, piece = group % pieces, units = p.units;                     \
  const INDEX place = group / pieces * (GROUP / lanes) + id / lanes;                          \
  const bool here = works && place < units;                                                   \
  const INDEX unit = min(place, (INDEX)(units - 1)), total = p.runs * p.length;               \
  const INDEX first = piece * (INDEX)p.piece;                                                 \
  const INDEX end = here ? min(total, (INDEX)(first + p.piece)) : first;
#define AT_UNIT(A, name) AT_CONST(A, name##_base, name##_offset) + unit * (INDEX)p.unit_step * VEC

typedef struct {
  INDEX e, run, i;  // vector e of the unit is the i-th of its run
} Walk;
INLINE Walk walk_from(NormElementsParams p, INDEX e) {
  const INDEX run = e / (INDEX)p.length;
  Walk w = {e, run, e - run * (INDEX)p.length};
  return w;
}
// The next vectors: at[k] are their places in elements of the unit, run[k] their runs. Returns how many there
// are. The rest repeats the first vector's place, because other items may be writing elsewhere. w->e < end.
INLINE int next_block(NormElementsParams p, Walk *w, INDEX end, INDEX *at, INDEX *run) {
  const INDEX length = p.length, run_step = p.run_step;
  int count = 0;
  EACH_VECTOR {
    const bool inside = w->e < end;
    at[k] = k == 0 || inside ? (w->run * run_step + w->i) * VEC : at[0];
    run[k] = k == 0 || inside ? w->run : run[0];
    count += inside;
    w->e += p.lanes;
    w->run += p.step_runs;
    w->i += p.step_rest;
    if (w->i >= length) {
      w->i -= length;
      ++w->run;
    }
  }
  return count;
}
#endif
