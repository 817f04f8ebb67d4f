// Pointwise operators for CPU drivers: a work-item sweeps a run of rows (or a chunk of one) with vectors of
// 16.
// Defines: see pointwise_formula.h; OUT, A, B, C, D are the operands' types, CONDITION_A.. marks bool
// conditions.
#define VECTORS
#include "pointwise_params.h"
#include "pointwise_formula.h"
#include "float8.h"
#include "quotient.h"

// How operand X (index k) is read at position i of the inner dimension: vector and scalar form.
#define GET16_0(X, p, i, s) ((T16)(TO(COMPUTE, LOAD(X, p, 0))))
#define GET16_1(X, p, i, s) TO16(COMPUTE, LOAD16(X, p, i))
#define GET16_2(X, p, i, s) gather_##X(p, i, s)
#define GET_0(X, p, i, s) TO(COMPUTE, LOAD(X, p, 0))
#define GET_1(X, p, i, s) TO(COMPUTE, LOAD(X, p, i))
#define GET_2(X, p, i, s) TO(COMPUTE, LOAD(X, p, (i) * (s)))

#define STRIDED(X)                                                                      \
  INLINE T16 gather_##X(__global const STYPE(X) *p, long i, long s) {                   \
    T lane[16];                                                                         \
    UNROLL for (int k = 0; k < 16; ++k) lane[k] = TO(COMPUTE, LOAD(X, p, (i + k) * s)); \
    return vload16(0, lane);                                                            \
  }
#if KIND_A == 2
STRIDED(A)
#endif
#if KIND_B == 2
STRIDED(B)
#endif
#if KIND_C == 2
STRIDED(C)
#endif
#if KIND_D == 2
STRIDED(D)
#endif

// One operand: its parameters, its pointer in a row, its vector and its scalar. A number has no pointer and
// no load.
#if KIND_A == 3
#define ROW_A
#define VEC_A number_a
#define ONE_A number_a.s0
#else
#define ROW_A __global const STYPE(A) *pa = AT_CONST(A, m1, p.offsets[1]) + offset_a;
#define VEC_A CAT(GET16_, KIND_A)(A, pa, i, p.strides[1][0])
#define ONE_A CAT(GET_, KIND_A)(A, pa, i, p.strides[1][0])
#endif
#if KIND_B == 3
#define ROW_B
#define VEC_B number_b
#define ONE_B number_b.s0
#else
#define ROW_B __global const STYPE(B) *pb = AT_CONST(B, m2, p.offsets[2]) + offset_b;
#define VEC_B CAT(GET16_, KIND_B)(B, pb, i, p.strides[2][0])
#define ONE_B CAT(GET_, KIND_B)(B, pb, i, p.strides[2][0])
#endif
#if KIND_C == 3
#define ROW_C
#define VEC_C number_c
#define ONE_C number_c.s0
#else
#define ROW_C __global const STYPE(C) *pc = AT_CONST(C, m3, p.offsets[3]) + offset_c;
#define VEC_C CAT(GET16_, KIND_C)(C, pc, i, p.strides[3][0])
#define ONE_C CAT(GET_, KIND_C)(C, pc, i, p.strides[3][0])
#endif
#if KIND_D == 3
#define ROW_D
#define VEC_D number_d
#define ONE_D number_d.s0
#else
#define ROW_D __global const STYPE(D) *pd = AT_CONST(D, m4, p.offsets[4]) + offset_d;
#define VEC_D CAT(GET16_, KIND_D)(D, pd, i, p.strides[4][0])
#define ONE_D CAT(GET_, KIND_D)(D, pd, i, p.strides[4][0])
#endif

#define NUMBER(k) ((T16)(FROM_BITS(COMPUTE, p.numbers[k])))

// m0 .. m4: out, a, b, c, d. Their offsets are parameters: a driver copies each argument of a launch.
ONE_ITEM __kernel void pointwise(__global void *m0, __global const void *m1, __global const void *m2,
                                 __global const void *m3, __global const void *m4,
                                 const PointwiseParams p) {
  const T16 number_a = NUMBER(0), number_b = NUMBER(1), number_c = NUMBER(2), number_d = NUMBER(3);
  const T16 s0 = NUMBER(4), s1 = NUMBER(5), s2 = NUMBER(6), s3 = NUMBER(7);
  const long i0 = get_global_id(0) * p.chunk, i1 = min((long)p.sizes[0], i0 + p.chunk);
  const long r0 = get_global_id(1) * p.rows_per_item, r1 = min((long)p.rows, r0 + p.rows_per_item);
  for (long r = r0; r < r1; ++r) {
    long rest = r, offset_out = 0, offset_a = 0, offset_b = 0, offset_c = 0, offset_d = 0;
    ROLLED for (int k = 1; k < p.rank; ++k) {
      const long next = QUOTIENT(ulong, rest, k), at = rest - next * p.sizes[k];
      rest = next;
      offset_out += at * p.strides[0][k];
      offset_a += at * p.strides[1][k];
      offset_b += at * p.strides[2][k];
      offset_c += at * p.strides[3][k];
      offset_d += at * p.strides[4][k];
    }
    __global STYPE(OUT) *out = AT(OUT, m0, p.offsets[0]) + offset_out;
    ROW_A ROW_B ROW_C ROW_D
    long i = i0;
    for (; i + 16 <= i1; i += 16) {
      const CVEC(OUT) v = TO16(OUT, formula16(VEC_A, VEC_B, VEC_C, VEC_D, s0, s1, s2, s3));
#if KIND_OUT == 1
      STORE16(OUT, out, i, v);
#else
      CTYPE(OUT) lane[16];
      vstore16(v, 0, lane);
      for (int k = 0; k < 16; ++k) STORE(OUT, out, (i + k) * p.strides[0][0], lane[k]);
#endif
    }
    ROLLED for (; i < i1; ++i) {
      STORE(OUT, out, i * p.strides[0][0],
            TO(OUT, formula(ONE_A, ONE_B, ONE_C, ONE_D, s0.s0, s1.s0, s2.s0, s3.s0)));
    }
  }
}
