// Reductions for GPUs: `lanes` work-items share an output and combine their values in local memory. With
// COLUMNS adjacent work-items take adjacent outputs, else adjacent elements of an output. FLAT: there is one
// reduced dimension; UNIT: and one operand, of stride 1 there (saves a 64-bit product per element). INDEX:
// uint or ulong. Every lane adds in blocks of 256 so that rounding errors grow slowly. GROUP is the
// work-group size.
#include "reduce_params.h"
#include "reduce_formula.h"

#define LIFT_AT(at)                                                                                         \
  lift(CAT(GET_, KIND_A)(A, pa, (at).a, 1), CAT(GET_, KIND_B)(B, pb, (at).b, 1),                            \
       CAT(GET_, KIND_C)(C, pc, (at).c, 1), CAT(GET_, KIND_D)(D, pd, (at).d, 1), s0, s1, s2, s3)

INLINE Offsets element(const Offsets start, INDEX q, const ReduceParams p) {
  Offsets at = start;
#ifdef UNIT
  at.a += q;
#elif defined(FLAT)
  at.a += (long)q * p.strides[0][0];
  at.b += (long)q * p.strides[1][0];
  at.c += (long)q * p.strides[2][0];
  at.d += (long)q * p.strides[3][0];
#else
  INDEX rest = q;
  EACH_AXIS(k, 0, p.rank, REDUCE_RANK) {
    const INDEX next = rest / (INDEX)p.sizes[k];
    const long i = rest - next * (INDEX)p.sizes[k];
    rest = next;
    at.a += i * p.strides[0][k];
    at.b += i * p.strides[1][k];
    at.c += i * p.strides[2][k];
    at.d += i * p.strides[3][k];
  }
#endif
  return at;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void reduce(REDUCE_ARGUMENTS, const ReduceParams p) {
  NUMBERS
  __local State shared[GROUP];
  const uint id = get_local_id(0), lanes = p.lanes, outputs = GROUP / lanes;
#ifdef COLUMNS
  const uint lane = id / outputs, output = id % outputs, step = outputs;
#else
  const uint lane = id % lanes, output = id / lanes, step = 1;
#endif
  const long k = (long)get_group_id(0) * outputs + output, piece = get_group_id(1);
  Offsets at = {0, 0, 0, 0, piece * p.piece_step, piece * p.piece_step};
  State total = identity_T();
  if (k < p.kept) {
    WALK_KEPT(at, k, 0)
    const Offsets none = {0, 0, 0, 0, 0, 0};
    POINTERS(at)
    const INDEX q1 = min((INDEX)p.count, (INDEX)((piece + 1) * p.chunk));
    INDEX q = (INDEX)(piece * p.chunk) + lane;
    while (q < q1) {
      State t0 = identity_T(), t1 = t0, t2 = t0, t3 = t0;
      for (int block = 0; block < 64 && q + 3 * lanes < q1; ++block, q += 4 * lanes) {
        const Offsets e0 = element(none, q, p), e1 = element(none, q + lanes, p);
        const Offsets e2 = element(none, q + 2 * lanes, p), e3 = element(none, q + 3 * lanes, p);
        const State l0 = LIFT_AT(e0), l1 = LIFT_AT(e1), l2 = LIFT_AT(e2), l3 = LIFT_AT(e3);
        t0 = combine(t0, l0);
        t1 = combine(t1, l1);
        t2 = combine(t2, l2);
        t3 = combine(t3, l3);
      }
      if (q < q1 && q + 3 * lanes >= q1) {
        for (; q < q1; q += lanes) t0 = combine(t0, LIFT_AT(element(none, q, p)));
      }
      total = combine(total, combine(combine(t0, t1), combine(t2, t3)));
    }
  }
  shared[id] = total;
  for (uint half_lanes = lanes / 2; half_lanes > 0; half_lanes /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < half_lanes) shared[id] = combine(shared[id], shared[id + half_lanes * step]);
  }
  if (lane == 0 && k < p.kept) {
    FINISH(shared[id], at.out0, at.out1)
  }
}
