// Parameters of the kernels for LDL^T factorisations. Matrices are packed, row by row.
#ifndef OCLTENSOR_LDL_PARAMS_H
#define OCLTENSOR_LDL_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 count, n;  // matrices of the batch, and their size
  tk_i64 columns;   // right-hand sides of each
} LdlParams;
#endif
