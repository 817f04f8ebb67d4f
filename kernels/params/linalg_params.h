// Parameters of the kernels of matrix factorisations. Strides count elements.
#ifndef OCLTENSOR_LINALG_PARAMS_H
#define OCLTENSOR_LINALG_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 count, rows, columns;    // matrices of the batch, and the part of each that the kernel works on
  tk_i64 steps, first;            // columns to eliminate, and the place of the first one in the whole matrix
  tk_i64 a_batch, a_row, a_col;
  tk_i64 b_batch, b_row, b_col;
  tk_i64 vector_batch;            // stride between the pivots, or the factors tau, of successive matrices
  // Jacobi's method: blocks of a matrix, rows of a block, the round, the first sweep, and how many sweeps
  tk_i64 blocks, block_rows, round, sweep, sweeps;
} LinalgParams;
#endif
