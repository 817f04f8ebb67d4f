// Reductions of short rows (at least 16 elements, one reduced dimension) for CPU drivers: a work-item takes a
// run of outputs, 8 rows at a time, whose lanes are combined in one tree of shuffles; combining one row at a
// time costs as much as 100 elements.
#include "vector_lanes.h"
#include "reduce_params.h"
#include "reduce_formula.h"

#define ROWS 8
#define LIFT16(j, i)                                                                                         \
  lift(CAT(GET16_, KIND_A)(A, pa[j], i, p.strides[0][0]), CAT(GET16_, KIND_B)(B, pb[j], i, p.strides[1][0]), \
       CAT(GET16_, KIND_C)(C, pc[j], i, p.strides[2][0]), CAT(GET16_, KIND_D)(D, pd[j], i, p.strides[3][0]), \
       v0, v1, v2, v3)

#define COMBINED(step, a, b)                                           \
  combined_(step##_LOW(T16, a.x, b.x), step##_HIGH(T16, a.x, b.x),     \
        step##_LOW(T16, a.y, b.y), step##_HIGH(T16, a.y, b.y))
INLINE State16 combined_(T16 x0, T16 x1, T16 y0, T16 y1) {
  State16 r;
  r.x = combine0(x0, x1);
  r.y = COMPONENTS == 2 ? combine1(y0, y1) : y0;
  return r;
}
// Lanes 2 j and 2 j + 1 of the result: the combination of all lanes of q[j].
INLINE State16 across_8(const State16 *q) {
  State16 a[4], b[2], c;
  UNROLL for (int j = 0; j < 4; ++j) a[j] = COMBINED(HALVES, q[2 * j], q[2 * j + 1]);
  UNROLL for (int j = 0; j < 2; ++j) b[j] = COMBINED(QUARTERS, a[2 * j], a[2 * j + 1]);
  c = COMBINED(PAIRS, b[0], b[1]);
  return combined_(c.x, c.x.s1032547698badcfe, c.y, c.y.s1032547698badcfe);
}

ONE_ITEM __kernel void reduce(REDUCE_ARGUMENTS, const ReduceParams p) {
  NUMBERS16
  const long k0 = get_global_id(0) * p.kept_per_item, k1 = min((long)p.kept, k0 + p.kept_per_item),
             n = p.sizes[0];
  // The rest after the last whole vector: the last 16 elements, of which only lanes from `fresh` on are new.
  const long whole = n / 16 * 16;
  const T16 lanes = (T16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
            fresh = (T16)((T)(16 - (n - whole)));
  for (long k = k0; k < k1; k += ROWS) {
    const int count = min((long)ROWS, k1 - k);
    __global const STYPE(A) *pa[ROWS];
    __global const STYPE(B) *pb[ROWS];
    __global const STYPE(C) *pc[ROWS];
    __global const STYPE(D) *pd[ROWS];
    long out0[ROWS], out1[ROWS];
    for (int j = 0; j < ROWS; ++j) {
      Offsets at = {0, 0, 0, 0, 0, 0};
      WALK_KEPT(at, k + min(j, count - 1), 0)
      pa[j] = AT_CONST(A, a_base, a_offset) + at.a;
      pb[j] = AT_CONST(B, b_base, b_offset) + at.b;
      pc[j] = AT_CONST(C, c_base, c_offset) + at.c;
      pd[j] = AT_CONST(D, d_base, d_offset) + at.d;
      out0[j] = at.out0;
      out1[j] = at.out1;
    }
    State16 q[ROWS];
    UNROLL for (int j = 0; j < ROWS; ++j) q[j] = LIFT16(j, 0);
    for (long i = 16; i < whole; i += 16)
      UNROLL for (int j = 0; j < ROWS; ++j) q[j] = combine(q[j], LIFT16(j, i));
    if (whole < n) {
      const State16 nothing = identity_T16();
      UNROLL for (int j = 0; j < ROWS; ++j) {
        State16 last = LIFT16(j, n - 16);
        last.x = (lanes >= fresh) ? last.x : nothing.x;
        last.y = (lanes >= fresh) ? last.y : nothing.y;
        q[j] = combine(q[j], last);
      }
    }
    const State16 all = across_8(q);
    const T16 first = finish0(all.x, all.y, v0, v1, v2, v3), second = finish1(all.x, all.y, v0, v1, v2, v3);
    T results[2][16];
    vstore16(first, 0, results[0]);
    vstore16(second, 0, results[1]);
    ROLLED for (int j = 0; j < count; ++j) {
      STORE(OUT0, AT(OUT0, out0_base, out0_offset), out0[j], TO(OUT0, results[0][2 * j]));
      if (COMPONENTS == 2)
        STORE(OUT1, AT(OUT1, out1_base, out1_offset), out1[j], TO(OUT1, results[1][2 * j]));
    }
  }
}
