// Reductions for CPU drivers, vectors along the reduced dimension: a work-item computes a run of outputs, or
// one piece of each. Partial sums are kept in blocks of 4096 elements so that rounding errors grow slowly.
#include "reduce_params.h"
#include "reduce_formula.h"

#define A_AT(i) CAT(GET16_, KIND_A)(A, pa, i, p.strides[0][0])
#define B_AT(i) CAT(GET16_, KIND_B)(B, pb, i, p.strides[1][0])
#define C_AT(i) CAT(GET16_, KIND_C)(C, pc, i, p.strides[2][0])
#define D_AT(i) CAT(GET16_, KIND_D)(D, pd, i, p.strides[3][0])
#define LIFT16(i) lift(A_AT(i), B_AT(i), C_AT(i), D_AT(i), v0, v1, v2, v3)
#define LIFT(i)                                                                                    \
  lift(CAT(GET_, KIND_A)(A, pa, i, p.strides[0][0]), CAT(GET_, KIND_B)(B, pb, i, p.strides[1][0]), \
       CAT(GET_, KIND_C)(C, pc, i, p.strides[2][0]), CAT(GET_, KIND_D)(D, pd, i, p.strides[3][0]), \
       s0, s1, s2, s3)
#define BLOCK 4096
// The number of independent accumulators: enough to hide an addition's latency and keep loads in flight. A
// state of two values fills the registers with half as many.
#if COMPONENTS == 1
#define WIDTH 8
#else
#define WIDTH 4
#endif
// One step of combining the accumulators. Steps are written out, because in a loop PoCL keeps q in memory.
#define FOLD(half) UNROLL for (int j = 0; j < half; ++j) q[j] = combine(q[j], q[j + half]);

ONE_ITEM __kernel void reduce(REDUCE_ARGUMENTS, const ReduceParams p) {
  NUMBERS16
  const long k0 = get_global_id(0) * p.kept_per_item, k1 = min((long)p.kept, k0 + p.kept_per_item);
  const long piece = get_global_id(1), outer = piece / p.inner_pieces, inner = piece - outer * p.inner_pieces;
  const long r0 = outer * p.chunk, r1 = min((long)p.count, r0 + p.chunk);
  const long i0 = inner * p.inner_chunk, i1 = min((long)p.sizes[0], i0 + p.inner_chunk);
  for (long k = k0; k < k1; ++k) {
    Offsets at = {0, 0, 0, 0, piece * p.piece_step, piece * p.piece_step};
    WALK_KEPT(at, k, 0)
    State16 total = identity_T16();
    State rest = identity_T();
    for (long r = r0; r < r1; ++r) {
      Offsets row = at;
      WALK_REDUCED(row, r, 1)
      POINTERS(row)
      long i = i0;
      while (i + 16 <= i1) {
        const long end = min(i1, i + BLOCK);
        State16 q[WIDTH];
        UNROLL for (int j = 0; j < WIDTH; ++j) q[j] = identity_T16();
        for (; i + 16 * WIDTH <= end; i += 16 * WIDTH)
          UNROLL for (int j = 0; j < WIDTH; ++j) q[j] = combine(q[j], LIFT16(i + 16 * j));
        for (; i + 16 <= end; i += 16) q[0] = combine(q[0], LIFT16(i));
#if WIDTH == 8
        FOLD(4)
#endif
        FOLD(2)
        FOLD(1)
        total = combine(total, q[0]);
      }
      ROLLED for (; i < i1; ++i) rest = combine(rest, LIFT(i));
    }
    if (i1 - i0 >= 16) rest = combine(rest, across(total));
    FINISH(rest, at.out0, at.out1)
  }
}
