// A pointwise formula over lists of tensors. Defines: EXPRESSION in a, b, c, s0; OUT, A, B, C types; LISTS of
// inputs; NUMBER_IN if the number is an operand, b or c (else it is s0); ALPHA: s0 is numbers[0]; S: the type
// of the tensor that holds the number, or that is multiplied with it.
#include "multi_tensor.h"

#define FORMULA(N, a, b, c, s) formula##N(a, b, c, a, s, s, s, s)

ITEMS __kernel void foreach(TENSOR_LISTS, const MultiTensorParams p) {
#ifdef S
  const T shared_number = SHARED(S, 0);
#else
  const T shared_number = 1;
#endif
  CHUNKS_OF_ITEM {
    LOCATE
    const T number = TENSOR_NUMBER * shared_number;
    const T s0 = ALPHA ? NUMBER(0) : NUMBER_IN ? (T)1 : number;
    __global STYPE(OUT) *out = ROLE(OUT, 0);
    __global const STYPE(A) *pa = ROLE(A, 1);
#if LISTS > 1
    __global const STYPE(B) *pb = ROLE(B, 2);
#define GET_B(V, N) GET(N, B, pb)
#else
#define GET_B(V, N) (V)(number)
#endif
#if LISTS > 2
    __global const STYPE(C) *pc = ROLE(C, 3);
#define GET_C(V, N) GET(N, C, pc)
#else
#define GET_C(V, N) (V)(number)
#endif
#define BODY(V, N)                                       \
  const V a = GET(N, A, pa);                             \
  const V b = GET_B(V, N), c = GET_C(V, N), s = (V)(s0); \
  PUT(N, OUT, out, FORMULA(N, a, b, c, s));
    SWEEP(BODY)
  }
}
