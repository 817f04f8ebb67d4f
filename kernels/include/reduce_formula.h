// A reduction as functions over a state, for one element and for a vector of 16.
//   COMPUTE, OUT0, OUT1, A, B, C, D  suffixes of types; a, b, c, d are converted to COMPUTE first
//   COMPONENTS   1 or 2 independent values are reduced in one sweep
//   LIFT<n>      value of an element, of a, b, c, d, s0 .. s3
//   COMBINE<n>   of two partial values x, y; associative and commutative
//   IDENTITY<n>  neutral element: the value of no elements
//   FINISH<n>    result, of the two components x, y and s0 .. s3
//   TRUTH        defined if a, b, c, d are 1 where the element, of any type, is not 0; COMPUTE is i64
//   KIND_A ..    along the vectorised dimension: 0 repeated, 1 contiguous, 2 strided, 3 absent
#include "types.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#define OVERLOAD __attribute__((overloadable))
#if FLOATING
#define REDUCE_VECTORS
#include "pow.h"
#endif
#if COMPONENTS == 1
#define LIFT1 a
#define COMBINE1 x
#define IDENTITY1 0
#define FINISH1 x
#endif

typedef struct {
  T x, y;
} State;
typedef struct {
  T16 x, y;
} State16;

#define K(v) ((V)((T)(v)))
#define REDUCTION(V, S)                                                                            \
  INLINE V OVERLOAD lift0(V a, V b, V c, V d, V s0, V s1, V s2, V s3) { return LIFT0; }            \
  INLINE V OVERLOAD lift1(V a, V b, V c, V d, V s0, V s1, V s2, V s3) { return LIFT1; }            \
  INLINE V OVERLOAD combine0(V x, V y) { return COMBINE0; }                                        \
  INLINE V OVERLOAD combine1(V x, V y) { return COMBINE1; }                                        \
  INLINE V OVERLOAD finish0(V x, V y, V s0, V s1, V s2, V s3) { return FINISH0; }                  \
  INLINE V OVERLOAD finish1(V x, V y, V s0, V s1, V s2, V s3) { return FINISH1; }                  \
  INLINE S OVERLOAD combine(S p, S q) {                                                            \
    S r;                                                                                           \
    r.x = combine0(p.x, q.x);                                                                      \
    r.y = COMPONENTS == 2 ? combine1(p.y, q.y) : p.y;                                              \
    return r;                                                                                      \
  }                                                                                                \
  INLINE S CAT(identity_, V)(void) {                                                               \
    S r;                                                                                           \
    r.x = K(IDENTITY0);                                                                            \
    r.y = K(IDENTITY1);                                                                            \
    return r;                                                                                      \
  }                                                                                                \
  INLINE S OVERLOAD lift(V a, V b, V c, V d, V s0, V s1, V s2, V s3) {                             \
    S r;                                                                                           \
    r.x = lift0(a, b, c, d, s0, s1, s2, s3);                                                       \
    r.y = COMPONENTS == 2 ? lift1(a, b, c, d, s0, s1, s2, s3) : K(IDENTITY1);                      \
    return r;                                                                                      \
  }
#define V T
REDUCTION(T, State)
#undef V
#define V T16
REDUCTION(T16, State16)
#undef V
#undef K

// Combines all lanes of a state. In shuffles of the whole width, because the types of half vectors have no
// name here.
INLINE State across(State16 v) {
  v.x = combine0(v.x, v.x.s89abcdef89abcdef);
  v.x = combine0(v.x, v.x.s4567456745674567);
  v.x = combine0(v.x, v.x.s2323232323232323);
  State r;
  r.x = combine0(v.x.s0, v.x.s1);
  r.y = v.y.s0;
  if (COMPONENTS == 2) {
    v.y = combine1(v.y, v.y.s89abcdef89abcdef);
    v.y = combine1(v.y, v.y.s4567456745674567);
    v.y = combine1(v.y, v.y.s2323232323232323);
    r.y = combine1(v.y.s0, v.y.s1);
  }
  return r;
}

#ifdef TRUTH
#define NUMBER(X, p, i) ((T)(LOAD(X, p, i) != 0))
#define NUMBER16(X, p, i) (TO16(COMPUTE, LOAD16(X, p, i) != (CVEC(X))(0)) & (T16)(1))
#else
#define NUMBER(X, p, i) TO(COMPUTE, LOAD(X, p, i))
#define NUMBER16(X, p, i) TO16(COMPUTE, LOAD16(X, p, i))
#endif
// Operand X, p its pointer, at position i of a dimension of stride s.
#define GET16_0(X, p, i, s) ((T16)(NUMBER(X, p, 0)))
#define GET16_1(X, p, i, s) NUMBER16(X, p, i)
#define GET16_2(X, p, i, s) gather_##X(p, i, s)
#define GET16_3(X, p, i, s) ((T16)((T)0))
#define GET_0(X, p, i, s) NUMBER(X, p, 0)
#define GET_1(X, p, i, s) NUMBER(X, p, i)
#define GET_2(X, p, i, s) NUMBER(X, p, (i) * (s))
#define GET_3(X, p, i, s) ((T)0)
#define STRIDED(X)                                                                      \
  INLINE T16 gather_##X(__global const STYPE(X) *p, long i, long s) {                   \
    T lane[16];                                                                         \
    UNROLL for (int k = 0; k < 16; ++k) lane[k] = NUMBER(X, p, (i + k) * s);            \
    return vload16(0, lane);                                                            \
  }
STRIDED(A)
STRIDED(B)
STRIDED(C)
STRIDED(D)

#define REDUCE_ARGUMENTS                                                                              \
  __global const void *a_base, ulong a_offset, __global const void *b_base, ulong b_offset,           \
      __global const void *c_base, ulong c_offset, __global const void *d_base, ulong d_offset,       \
      __global void *out0_base, ulong out0_offset, __global void *out1_base, ulong out1_offset
#define NUMBERS                                                                                \
  const T s0 = FROM_BITS(COMPUTE, p.numbers[0]), s1 = FROM_BITS(COMPUTE, p.numbers[1]);        \
  const T s2 = FROM_BITS(COMPUTE, p.numbers[2]), s3 = FROM_BITS(COMPUTE, p.numbers[3]);
#define NUMBERS16                                                                              \
  NUMBERS const T16 v0 = (T16)(s0), v1 = (T16)(s1), v2 = (T16)(s2), v3 = (T16)(s3);
#define POINTERS(at)                                                                           \
  __global const STYPE(A) *pa = AT_CONST(A, a_base, a_offset) + at.a;                          \
  __global const STYPE(B) *pb = AT_CONST(B, b_base, b_offset) + at.b;                          \
  __global const STYPE(C) *pc = AT_CONST(C, c_base, c_offset) + at.c;                          \
  __global const STYPE(D) *pd = AT_CONST(D, d_base, d_offset) + at.d;
#define FINISH(state, at0, at1)                                                                       \
  STORE(OUT0, AT(OUT0, out0_base, out0_offset), at0,                                                  \
        TO(OUT0, finish0((state).x, (state).y, s0, s1, s2, s3)));                                     \
  if (COMPONENTS == 2)                                                                                \
    STORE(OUT1, AT(OUT1, out1_base, out1_offset), at1,                                                \
          TO(OUT1, finish1((state).x, (state).y, s0, s1, s2, s3)));

typedef struct {
  long a, b, c, d, out0, out1;
} Offsets;

// Adds the offsets of element `rest` of a loop nest, from dimension `first` on. Unrolled, so that indices
// into the parameters are constants: otherwise a GPU would copy the structure to its stack.
#define WALK(at, index, first, rank, sizes_, strides_, with_out)                \
  {                                                                             \
    long rest = (index);                                                        \
    EACH_AXIS(k, first, rank, REDUCE_RANK) {                                    \
      const long next = k + 1 < rank ? rest / sizes_[k] : 0;                    \
      const long i = rest - next * sizes_[k];                                   \
      rest = next;                                                              \
      at.a += i * strides_[0][k];                                               \
      at.b += i * strides_[1][k];                                               \
      at.c += i * strides_[2][k];                                               \
      at.d += i * strides_[3][k];                                               \
      if (with_out) {                                                           \
        at.out0 += i * strides_[4 * with_out][k];                               \
        at.out1 += i * strides_[(4 + 1) * with_out][k];                         \
      }                                                                         \
    }                                                                           \
  }
#define WALK_KEPT(at, index, first) WALK(at, index, first, p.kept_rank, p.kept_sizes, p.kept_strides, 1)
#define WALK_REDUCED(at, index, first) WALK(at, index, first, p.rank, p.sizes, p.strides, 0)
