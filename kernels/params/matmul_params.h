// Parameters of the matrix products: c[m,n] = alpha * scale[m,n] * sum_k a[m,k] * b[k,n] + beta * s[m,n], per
// batch. Strides count elements and may be anything; alpha and beta are bits in the result's compute type.
#ifndef OCLTENSOR_MATMUL_PARAMS_H
#define OCLTENSOR_MATMUL_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 m, n, k;
  tk_i64 a_batch, a_row, a_col;
  tk_i64 b_batch, b_row, b_col;
  tk_i64 c_batch, c_row, c_col;
  tk_i64 s_batch, s_row, s_col;
  tk_i64 scale_row, scale_column;
  tk_u64 alpha, beta;
} MatmulParams;
#endif
