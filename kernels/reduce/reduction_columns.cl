// Reductions for CPU drivers, vectors along a kept dimension: a work-item reduces a block of adjacent columns
// over a run of rows, four rows at a time. Blocks of 256 rows are summed separately, so that rounding errors
// grow slowly.
#include "reduce_params.h"
#include "reduce_formula.h"

#define WIDEST 64  // vectors in a block of columns
#define A_AT(i) CAT(GET16_, KIND_A)(A, pa, i, p.kept_strides[0][0])
#define B_AT(i) CAT(GET16_, KIND_B)(B, pb, i, p.kept_strides[1][0])
#define C_AT(i) CAT(GET16_, KIND_C)(C, pc, i, p.kept_strides[2][0])
#define D_AT(i) CAT(GET16_, KIND_D)(D, pd, i, p.kept_strides[3][0])
#define VEC_KINDS(i) A_AT(i), B_AT(i), C_AT(i), D_AT(i)
#define ONE_KINDS(i)                                                                                         \
  CAT(GET_, KIND_A)(A, pa, i, p.kept_strides[0][0]), CAT(GET_, KIND_B)(B, pb, i, p.kept_strides[1][0]),      \
      CAT(GET_, KIND_C)(C, pc, i, p.kept_strides[2][0]), CAT(GET_, KIND_D)(D, pd, i, p.kept_strides[3][0])

// Row q of the block: vectors are combined into acc, the columns after the last whole vector into tail.
#define ROW_POINTERS(q)   \
  Offsets row = at;       \
  WALK_REDUCED(row, q, 0) \
  POINTERS(row)

INLINE State16 row_vector(const ReduceParams *params, long i, __global const STYPE(A) *pa,
                          __global const STYPE(B) *pb, __global const STYPE(C) *pc,
                          __global const STYPE(D) *pd, T16 v0, T16 v1, T16 v2, T16 v3) {
#define p (*params)
  return lift(VEC_KINDS(i), v0, v1, v2, v3);
#undef p
}
#define ROW_VECTOR(n, i) row_vector(&p, i, pa##n, pb##n, pc##n, pd##n, v0, v1, v2, v3)
#define NAMED_POINTERS(n, q)                                                                  \
  Offsets row##n = at;                                                                        \
  WALK_REDUCED(row##n, q, 0)                                                                  \
  __global const STYPE(A) *pa##n = AT_CONST(A, a_base, a_offset) + row##n.a;                  \
  __global const STYPE(B) *pb##n = AT_CONST(B, b_base, b_offset) + row##n.b;                  \
  __global const STYPE(C) *pc##n = AT_CONST(C, c_base, c_offset) + row##n.c;                  \
  __global const STYPE(D) *pd##n = AT_CONST(D, d_base, d_offset) + row##n.d;

ONE_ITEM __kernel void reduce(REDUCE_ARGUMENTS, const ReduceParams p) {
  NUMBERS16
  const long outer = get_global_id(0) / p.inner_pieces, block = get_global_id(0) - outer * p.inner_pieces;
  const long c0 = block * p.inner_chunk;
  const int columns = min(p.inner_chunk, p.kept_sizes[0] - c0), vectors = columns / 16;
  const long piece = get_global_id(1), q1 = min((long)p.count, (piece + 1) * p.chunk);
  Offsets at = {c0 * p.kept_strides[0][0], c0 * p.kept_strides[1][0], c0 * p.kept_strides[2][0],
                c0 * p.kept_strides[3][0], piece * p.piece_step + c0 * p.kept_strides[4][0],
                piece * p.piece_step + c0 * p.kept_strides[5][0]};
  WALK_KEPT(at, outer, 1)

  State16 total[WIDEST], partial[WIDEST];
  State tail[16];
  for (int i = 0; i < 16; ++i) tail[i] = identity_T();
  long q = piece * p.chunk;
  const bool blocks = q1 - q > 256;
  if (blocks)
    for (int i = 0; i < vectors; ++i) total[i] = identity_T16();
  do {
    const long end = min(q1, q + 256);
    for (int i = 0; i < vectors; ++i) partial[i] = identity_T16();
    for (; q + 4 <= end; q += 4) {
      NAMED_POINTERS(0, q)
      NAMED_POINTERS(1, q + 1)
      NAMED_POINTERS(2, q + 2)
      NAMED_POINTERS(3, q + 3)
      for (int i = 0; i < vectors; ++i)
        partial[i] = combine(partial[i], combine(combine(ROW_VECTOR(0, 16 * i), ROW_VECTOR(1, 16 * i)),
                                           combine(ROW_VECTOR(2, 16 * i), ROW_VECTOR(3, 16 * i))));
    }
    for (; q < end; ++q) {
      ROW_POINTERS(q)
      for (int i = 0; i < vectors; ++i)
        partial[i] = combine(partial[i], lift(VEC_KINDS(16 * i), v0, v1, v2, v3));
    }
    if (blocks)
      for (int i = 0; i < vectors; ++i) total[i] = combine(total[i], partial[i]);
  } while (q < q1);
  if (columns > 16 * vectors) {
    for (q = piece * p.chunk; q < q1;) {
      const long end = min(q1, q + 256);
      State odd[16];
      for (int i = 0; i < 16; ++i) odd[i] = identity_T();
      for (; q < end; ++q) {
        ROW_POINTERS(q)
        for (int i = 16 * vectors; i < columns; ++i)
          odd[i - 16 * vectors] = combine(odd[i - 16 * vectors], lift(ONE_KINDS(i), s0, s1, s2, s3));
      }
      for (int i = 0; i < 16; ++i) tail[i] = combine(tail[i], odd[i]);
    }
  }
  State16 *result = blocks ? total : partial;
  int done = 0;
  const bool second_dense = COMPONENTS == 1 || p.kept_strides[5][0] == 1;
  if (p.kept_strides[4][0] == 1 && second_dense) {
    for (int i = 0; i < vectors; ++i) {
      const T16 x = result[i].x, y = result[i].y;
      STORE16(OUT0, AT(OUT0, out0_base, out0_offset), at.out0 + 16 * i,
              TO16(OUT0, finish0(x, y, v0, v1, v2, v3)));
      if (COMPONENTS == 2)
        STORE16(OUT1, AT(OUT1, out1_base, out1_offset), at.out1 + 16 * i,
                TO16(OUT1, finish1(x, y, v0, v1, v2, v3)));
    }
    done = 16 * vectors;
  }
  for (int i = done; i < columns; ++i) {
    State one;
    if (i < 16 * vectors) {
      one.x = ((const T *)&result[i / 16].x)[i % 16];
      one.y = ((const T *)&result[i / 16].y)[i % 16];
    } else {
      one = tail[i - 16 * vectors];
    }
    FINISH(one, at.out0 + i * p.kept_strides[4][0], at.out1 + i * p.kept_strides[5][0])
  }
}
