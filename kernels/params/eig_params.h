// Parameters of the kernels for eigenvalues of general matrices. Strides count elements.
#ifndef OCLTENSOR_EIG_PARAMS_H
#define OCLTENSOR_EIG_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 count, n;      // matrices of the batch, and their size
  tk_i64 vectors;       // whether eigenvectors are wanted
  tk_i64 x_row, x_col;  // of the eigenvectors: between elements of one, and from one to the next
  tk_i64 column, groups;  // of a reduction: the column, and the work-groups of a matrix
} EigParams;
#endif
