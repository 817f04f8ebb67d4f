// The end of a product or a convolution: what becomes of a sum before it is stored. The only place that knows
// it: a kernel sums terms, ends each result, and stores it.
//   result[m, n] = alpha * scale[m, n] * sum[m, n] + beta * self[m, n], then the formula
// A bias, a residual and scales of rows or columns are matrices with strides of 0. Sums of pieces of the
// terms end where the pieces are added (matmul/split_k_sum.cl).
// Defines: SELF_TYPE; SCALE_TYPE, if there are scales; EXPRESSION, if there is a formula (in `a`: see
// pointwise_formula.h). END_T is what it is computed in: accumulator.h's type where that is included before,
// else float.
#ifndef OCLTENSOR_EPILOGUE_H
#define OCLTENSOR_EPILOGUE_H
#include "matmul_params.h"
#include "types.h"
#ifdef OCLTENSOR_ACCUMULATOR_H
typedef acc_t END_T;
#define TO_END(v) ACC(v)
#define END_NUMBER(bits) ACC(FROM_BITS(RESULT, bits))
#define END_ADD(a, b, c) MULTIPLY_ADD(a, b, c)
#else
typedef float END_T;
#define TO_END(v) (v)
#define END_NUMBER(bits) as_float((uint)(bits))
#define END_ADD(a, b, c) fma(a, b, c)
#endif
#ifdef EXPRESSION
#include "pointwise_formula.h"
#define END_FORMULA(v) formula(v, 0, 0, 0, 0, 0, 0, 0)
#else
#define END_FORMULA(v) (v)
#endif

// Of one matrix of the batch. What is known while compiling, as adds_self mostly is, costs nothing.
typedef struct {
  END_T alpha, beta;
  bool adds_self;
  __global const STYPE(SELF_TYPE) *self;
  long self_row, self_column;
#ifdef SCALE_TYPE
  __global const STYPE(SCALE_TYPE) *scales;
  long scale_row, scale_column;
#endif
} Epilogue;

// Parameters of a kernel, and of functions. Those of a kernel of one item are never under a condition: it has
// them written out.
#ifdef SCALE_TYPE
#define SCALE_PARAMETERS __global const void *scales_base, ulong scales_offset,
#define SCALE_ARGUMENTS scales_base, scales_offset,
#else
#define SCALE_PARAMETERS
#define SCALE_ARGUMENTS
#endif
// The end of matrix z's results.
INLINE Epilogue epilogue_of(bool adds_self, __global const void *s_base, ulong s_offset,
                            SCALE_PARAMETERS long z, const MatmulParams p) {
  Epilogue e;
  e.alpha = END_NUMBER(p.alpha);
  e.beta = END_NUMBER(p.beta);
  e.adds_self = adds_self;
  e.self = AT_CONST(SELF_TYPE, s_base, s_offset) + z * p.s_batch;
  e.self_row = p.s_row;
  e.self_column = p.s_col;
#ifdef SCALE_TYPE
  e.scales = AT_CONST(SCALE_TYPE, scales_base, scales_offset);
  e.scale_row = p.scale_row;
  e.scale_column = p.scale_column;
#endif
  return e;
}

// The same end, of results whose first one is (m, n).
INLINE Epilogue epilogue_from(Epilogue e, long m, long n) {
  e.self += m * e.self_row + n * e.self_column;
#ifdef SCALE_TYPE
  e.scales += m * e.scale_row + n * e.scale_column;
#endif
  return e;
}

// Of convolutions, whose rows are channels: a bias, if there is one.
INLINE Epilogue epilogue_of_bias(bool adds_bias, __global const void *bias_base, ulong bias_offset,
                                 long stride) {
  Epilogue e;
  e.alpha = e.beta = 1;
  e.adds_self = adds_bias;
  e.self = AT_CONST(SELF_TYPE, bias_base, bias_offset);
  e.self_row = stride;
  e.self_column = 0;
  return e;
}

// Element (m, n) of self, 0 if none is added: of kernels that load it before they have the sum.
INLINE END_T self_at(long m, long n, const Epilogue e) {
  return e.adds_self ? TO_END(LOAD(SELF_TYPE, e.self, m * e.self_row + n * e.self_column)) : (END_T)(0);
}

// Result (m, n); row and column exist.
INLINE END_T ended(END_T sum, long m, long n, const Epilogue e) {
  END_T v = sum * e.alpha;
#ifdef SCALE_TYPE
  v *= TO_END(LOAD(SCALE_TYPE, e.scales, m * e.scale_row + n * e.scale_column));
#endif
  if (e.adds_self) v = END_ADD(e.beta, self_at(m, n, e), v);
  return END_FORMULA(v);
}

// The steps of an end, for kernels that keep sums in vectors of floats and load the rest so; and an end that
// has neither scales nor a formula, as those of convolutions.
#define END_OF_VECTORS(T)                                                                               \
  INLINE T CAT(scaled_, T)(T sum, const Epilogue e) { return sum * (T)(e.alpha); }                      \
  INLINE T CAT(with_self_, T)(T v, T self, const Epilogue e) { return fma((T)(e.beta), self, v); }      \
  INLINE T CAT(ended_, T)(T sum, T self, const Epilogue e) {                                            \
    const T v = CAT(scaled_, T)(sum, e);                                                                \
    return e.adds_self ? CAT(with_self_, T)(v, self, e) : v;                                            \
  }
#endif
