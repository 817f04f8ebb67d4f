// Pointwise operators on complex numbers, for CPU drivers (CPU_STYLE) and GPUs: a formula with functions of
// complex.h in a, b, c, s0 .. s2, all of them cplx. Operands of real types get a zero imaginary part; OUT
// of a real type takes the result's real part.
//   PART: f32 or f64, of the parts
//   FLAT: the loop nest has one dimension; INDEX (GPUs): uint, or ulong for 2^31 elements and more
//   KIND_A .. KIND_D   3: a number (absent operands too), else a tensor; TEST: the formula is a truth value
#include "pointwise_params.h"
#include "complex.h"
#include "quotient.h"
#include "range.h"

#ifdef TEST
#define RESULT(a, b, c, s0, s1, s2) ((EXPRESSION) ? Z(1, 0) : Z(0, 0))
#else
#define RESULT(a, b, c, s0, s1, s2) (EXPRESSION)
#endif
INLINE cplx formula(cplx a, cplx b, cplx c, cplx s0, cplx s1, cplx s2) {
  return RESULT(a, b, c, s0, s1, s2);
}

#define NUMBER(k) Z(FROM_BITS(PART, p.numbers[k]), FROM_BITS(PART, q.bits[k]))
#if KIND_A == 3
#define GET_A(i) NUMBER(0)
#else
#define GET_A(i) CLOAD(A, AT_CONST(A, a_base, a_offset), offset_a + (i) * p.strides[1][0])
#endif
#if KIND_B == 3
#define GET_B(i) NUMBER(1)
#else
#define GET_B(i) CLOAD(B, AT_CONST(B, b_base, b_offset), offset_b + (i) * p.strides[2][0])
#endif
#if KIND_C == 3
#define GET_C(i) NUMBER(2)
#else
#define GET_C(i) CLOAD(C, AT_CONST(C, c_base, c_offset), offset_c + (i) * p.strides[3][0])
#endif
#define APPLY(i)                                                                             \
  CSTORE(OUT, AT(OUT, out_base, out_offset), offset_out + (i) * p.strides[0][0],             \
         formula(GET_A(i), GET_B(i), GET_C(i), NUMBER(4), NUMBER(5), NUMBER(6)));
#if CPU_STYLE
#define INDEX ulong
#define EACH_OUTER_AXIS for (int k = 1; k < p.rank; ++k)
#else
#define EACH_OUTER_AXIS EACH_AXIS(k, 1, p.rank, POINTWISE_RANK)
#endif
#define WALK(row)                                                \
  INDEX rest = (row);                                            \
  long offset_out = 0, offset_a = 0, offset_b = 0, offset_c = 0; \
  EACH_OUTER_AXIS {                                              \
    const INDEX next = QUOTIENT(INDEX, rest, k);                 \
    const long at = rest - next * (INDEX)p.sizes[k];             \
    rest = next;                                                 \
    offset_out += at * p.strides[0][k];                          \
    offset_a += at * p.strides[1][k];                            \
    offset_b += at * p.strides[2][k];                            \
    offset_c += at * p.strides[3][k];                            \
  }

GROUP __kernel void pointwise(__global void *out_base, ulong out_offset, __global const void *a_base,
                        ulong a_offset, __global const void *b_base, ulong b_offset,
                        __global const void *c_base, ulong c_offset, const PointwiseParams p,
                        const ImaginaryParams q) {
#if CPU_STYLE
  const long i0 = get_global_id(0) * p.chunk, i1 = min((long)p.sizes[0], i0 + p.chunk);
  const long r0 = get_global_id(1) * p.rows_per_item, r1 = min((long)p.rows, r0 + p.rows_per_item);
  for (long r = r0; r < r1; ++r) {
    WALK(r)
    for (long i = i0; i < i1; ++i) { APPLY(i) }
  }
#else
  const INDEX item = get_global_id(0);
  if (get_global_id(0) >= (ulong)(p.sizes[0] * p.rows)) return;
  const INDEX row = FLAT ? 0 : QUOTIENT(INDEX, item, 0);
  const long i = item - row * (INDEX)p.sizes[0];
  WALK(row)
  APPLY(i)
#endif
}
