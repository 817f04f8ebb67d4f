// Reductions for CPU drivers, vectors along a kept dimension of at least 16 outputs, for operands that fit
// the caches: a work-item takes 64 columns, whose sums stay in registers, over a run of rows of one reduced
// dimension. Blocks of 256 rows are summed separately, so that rounding errors grow slowly.
#include "reduce_params.h"
#include "reduce_formula.h"

#define VECTORS 4
#define LIFT_AT(i)                                          \
  lift(CAT(GET16_, KIND_A)(A, pa, i, p.kept_strides[0][0]), \
       CAT(GET16_, KIND_B)(B, pb, i, p.kept_strides[1][0]), \
       CAT(GET16_, KIND_C)(C, pc, i, p.kept_strides[2][0]), \
       CAT(GET16_, KIND_D)(D, pd, i, p.kept_strides[3][0]), v0, v1, v2, v3)
#define ADD_ROW(sums)                                                                       \
  UNROLL for (int v = 0; v < VECTORS; ++v) sums[v] = combine(sums[v], LIFT_AT(columns[v])); \
  pa += p.strides[0][0];                                                                    \
  pb += p.strides[1][0];                                                                    \
  pc += p.strides[2][0];                                                                    \
  pd += p.strides[3][0];

ONE_ITEM __kernel void reduce(REDUCE_ARGUMENTS, const ReduceParams p) {
  NUMBERS16
  const long outer = get_global_id(0) / p.inner_pieces, block = get_global_id(0) - outer * p.inner_pieces;
  const long piece = get_global_id(1), q0 = piece * p.chunk, q1 = min((long)p.count, q0 + p.chunk);
  Offsets at = {q0 * p.strides[0][0], q0 * p.strides[1][0], q0 * p.strides[2][0], q0 * p.strides[3][0],
                piece * p.piece_step, piece * p.piece_step};
  WALK_KEPT(at, outer, 1)
  POINTERS(at)
  // Vectors at the end overlap, and each stores only what the others do not.
  const long c0 = block * 16 * VECTORS, last = p.kept_sizes[0] - 16;
  long columns[VECTORS];
  UNROLL for (int v = 0; v < VECTORS; ++v) columns[v] = min(c0 + 16 * v, last);
  State16 total[VECTORS];
  UNROLL for (int v = 0; v < VECTORS; ++v) total[v] = identity_T16();
  for (long q = q0; q < q1;) {
    const long end = min(q1, q + 256);
    State16 even[VECTORS], odd[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; ++v) even[v] = odd[v] = identity_T16();
    for (; q + 2 <= end; q += 2) {
      ADD_ROW(even)
      ADD_ROW(odd)
    }
    for (; q < end; ++q) {
      ADD_ROW(even)
    }
    UNROLL for (int v = 0; v < VECTORS; ++v) total[v] = combine(total[v], combine(even[v], odd[v]));
  }
  const bool dense = (COMPONENTS == 1 || p.kept_strides[5][0] == 1) && p.kept_strides[4][0] == 1;
  T lane[2][16 * VECTORS];
  UNROLL for (int v = 0; v < VECTORS; ++v) {
    vstore16(finish0(total[v].x, total[v].y, v0, v1, v2, v3), v, lane[0]);
    vstore16(finish1(total[v].x, total[v].y, v0, v1, v2, v3), v, lane[1]);
  }
  ROLLED for (int v = 0; v < VECTORS; ++v) {
    const long first = c0 + 16 * v, c = min(first, last);
    if (c == first && dense) {
      STORE16(OUT0, AT(OUT0, out0_base, out0_offset), at.out0 + c, TO16(OUT0, vload16(v, lane[0])));
      if (COMPONENTS == 2)
        STORE16(OUT1, AT(OUT1, out1_base, out1_offset), at.out1 + c, TO16(OUT1, vload16(v, lane[1])));
      continue;
    }
    ROLLED for (long i = max(first - c, 0L); i < 16; ++i) {
      STORE(OUT0, AT(OUT0, out0_base, out0_offset), at.out0 + (c + i) * p.kept_strides[4][0],
            TO(OUT0, lane[0][16 * v + i]));
      if (COMPONENTS == 2)
        STORE(OUT1, AT(OUT1, out1_base, out1_offset), at.out1 + (c + i) * p.kept_strides[5][0],
              TO(OUT1, lane[1][16 * v + i]));
    }
  }
}
