// Pointwise operators for GPUs: a work-item computes one element, or several if every operand is contiguous
// or repeated along the inner dimension.
// Defines: as elementwise_cpu.cl; FLAT if the loop nest is one contiguous run, LINES if its inner dimension
// is (a row or a column broadcast to a matrix); VEC if a work-item takes a vector of so many elements: the
// contiguous operands are of types of element_vectors.h, their lines start at multiples of VEC elements and,
// unless FLAT, have a multiple of it; INDEX the type of element counts (uint, or ulong for 2^31 elements and
// more).
#include "pointwise_params.h"
#include "pointwise_formula.h"
#include "float8.h"
#include "quotient.h"

// Loads operand X at element i of the run, or at an offset of its own.
#define GET_0(X, p, i) TO(COMPUTE, LOAD(X, p, 0))
#define GET_1(X, p, i) TO(COMPUTE, LOAD(X, p, i))
#define GET_3(X, p, i) p
#ifdef VEC
#include "element_vectors.h"
// The same for VEC elements from i on.
#define EACH UNROLL for (int k = 0; k < VEC; ++k)
#define GET_VECTOR(KIND, X, p, i, v) CAT(GET_VECTOR_, KIND)(X, p, i, v)
#define GET_VECTOR_0(X, p, i, v) EACH v[k] = GET_0(X, p, i)
#define GET_VECTOR_1(X, p, i, v) LOADV(X, p, i, v)
#define GET_VECTOR_3(X, p, i, v) EACH v[k] = p
#endif
#define SPREAD_0(X, p, i) TO(COMPUTE, LOAD(X, p, i))
#define SPREAD_1(X, p, i) TO(COMPUTE, LOAD(X, p, i))
#define SPREAD_2(X, p, i) TO(COMPUTE, LOAD(X, p, i))
#define SPREAD_3(X, p, i) p

// Advances the pointer of a tensor; a number has none.
#define MOVE(KIND, p, distance) CAT(MOVE_, KIND)(p, distance)
#define MOVE_0(p, distance) p += (distance);
#define MOVE_1(p, distance) p += (distance);
#define MOVE_3(p, distance)

#if KIND_A == 3
#define PTR_A const T pa = FROM_BITS(COMPUTE, p.numbers[0]);
#else
#define PTR_A __global const STYPE(A) *pa = AT_CONST(A, a_base, a_offset);
#endif
#if KIND_B == 3
#define PTR_B const T pb = FROM_BITS(COMPUTE, p.numbers[1]);
#else
#define PTR_B __global const STYPE(B) *pb = AT_CONST(B, b_base, b_offset);
#endif
#if KIND_C == 3
#define PTR_C const T pc = FROM_BITS(COMPUTE, p.numbers[2]);
#else
#define PTR_C __global const STYPE(C) *pc = AT_CONST(C, c_base, c_offset);
#endif
#if KIND_D == 3
#define PTR_D const T pd = FROM_BITS(COMPUTE, p.numbers[3]);
#else
#define PTR_D __global const STYPE(D) *pd = AT_CONST(D, d_base, d_offset);
#endif
#define ALL_POINTERS PTR_A PTR_B PTR_C PTR_D
// Moves all pointers to a line of the loop nest, one of all dimensions but the inner one.
#define MOVE_TO_LINE(line)                           \
  INDEX rest = line;                                 \
  EACH_AXIS(k, 1, p.rank, POINTWISE_RANK) {          \
    const INDEX next = QUOTIENT(INDEX, rest, k);     \
    const long at = rest - next * (INDEX)p.sizes[k]; \
    rest = next;                                     \
    out += at * p.strides[0][k];                     \
    MOVE(KIND_A, pa, at * p.strides[1][k])           \
    MOVE(KIND_B, pb, at * p.strides[2][k])           \
    MOVE(KIND_C, pc, at * p.strides[3][k])           \
    MOVE(KIND_D, pd, at * p.strides[4][k])           \
  }
#define PARAMETERS                                                                                     \
  const T s0 = FROM_BITS(COMPUTE, p.numbers[4]), s1 = FROM_BITS(COMPUTE, p.numbers[5]);                \
  const T s2 = FROM_BITS(COMPUTE, p.numbers[6]), s3 = FROM_BITS(COMPUTE, p.numbers[7]);

__kernel void pointwise(__global void *out_base, ulong out_offset, __global const void *a_base,
                        ulong a_offset, __global const void *b_base, ulong b_offset,
                        __global const void *c_base, ulong c_offset, __global const void *d_base,
                        ulong d_offset, const PointwiseParams p) {
  PARAMETERS
  ALL_POINTERS
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
#ifdef VEC
  const INDEX n = p.sizes[0];
#ifdef FLAT
  const INDEX i = (INDEX)get_global_id(0) * VEC;
#else
  const INDEX line = QUOTIENT(INDEX, (INDEX)get_global_id(0), 0);
  if (line >= (INDEX)p.rows) return;
  const INDEX i = ((INDEX)get_global_id(0) - line * (INDEX)p.parts) * VEC;
  MOVE_TO_LINE(line)
#endif
  if (i + VEC <= n) {
    T a[VEC], b[VEC], c[VEC], d[VEC];
    GET_VECTOR(KIND_A, A, pa, i, a);
    GET_VECTOR(KIND_B, B, pb, i, b);
    GET_VECTOR(KIND_C, C, pc, i, c);
    GET_VECTOR(KIND_D, D, pd, i, d);
    EACH a[k] = TO(OUT, formula(a[k], b[k], c[k], d[k], s0, s1, s2, s3));
    STOREV(OUT, out, i, a);
    return;
  }
  for (INDEX at = i; at < n; ++at)
    STORE(OUT, out, at,
          TO(OUT, formula(CAT(GET_, KIND_A)(A, pa, at), CAT(GET_, KIND_B)(B, pb, at),
                          CAT(GET_, KIND_C)(C, pc, at), CAT(GET_, KIND_D)(D, pd, at), s0, s1, s2, s3)));
#elif defined(FLAT) || defined(LINES)
  // A work-group covers 4 * its size neighbouring elements; all loads of an item are issued before its first
  // store.
  const INDEX n = p.sizes[0];
  const INDEX step = get_local_size(0);
#ifdef LINES
  // The line is found once for all of them. By items, as groups may be smaller than the launcher said; each
  // is of one line.
  const INDEX line = QUOTIENT(INDEX, (INDEX)get_global_id(0), 0), own = get_local_id(0);
  if (line >= (INDEX)p.rows) return;
  const INDEX i = ((INDEX)get_global_id(0) - line * (INDEX)p.parts - own) * 4 + own;
  MOVE_TO_LINE(line)
#else
  const INDEX i = (INDEX)get_group_id(0) * step * 4 + get_local_id(0);
#endif
  if (i >= n) return;
  T a[4], b[4], c[4], d[4];
  UNROLL for (int k = 0; k < 4; ++k) {
    // Past the end the item repeats its own element: in place, other items overwrite theirs.
    const INDEX at = i + k * step < n ? i + k * step : i;
    a[k] = CAT(GET_, KIND_A)(A, pa, at);
    b[k] = CAT(GET_, KIND_B)(B, pb, at);
    c[k] = CAT(GET_, KIND_C)(C, pc, at);
    d[k] = CAT(GET_, KIND_D)(D, pd, at);
  }
  UNROLL for (int k = 0; k < 4; ++k)
    if (i + k * step < n)
      STORE(OUT, out, i + k * step, TO(OUT, formula(a[k], b[k], c[k], d[k], s0, s1, s2, s3)));
#else
  INDEX rest = get_global_id(0);
  long offset_out = 0, offset_a = 0, offset_b = 0, offset_c = 0, offset_d = 0;
  if (rest >= (INDEX)(p.sizes[0] * p.rows)) return;
  EACH_AXIS(k, 0, p.rank, POINTWISE_RANK) {
    const INDEX next = QUOTIENT(INDEX, rest, k);
    const long at = rest - next * (INDEX)p.sizes[k];
    rest = next;
    offset_out += at * p.strides[0][k];
    offset_a += at * p.strides[1][k];
    offset_b += at * p.strides[2][k];
    offset_c += at * p.strides[3][k];
    offset_d += at * p.strides[4][k];
  }
  STORE(OUT, out, offset_out,
        TO(OUT, formula(CAT(SPREAD_, KIND_A)(A, pa, offset_a), CAT(SPREAD_, KIND_B)(B, pb, offset_b),
                        CAT(SPREAD_, KIND_C)(C, pc, offset_c), CAT(SPREAD_, KIND_D)(D, pd, offset_d), s0, s1,
                        s2, s3)));
#endif
}
