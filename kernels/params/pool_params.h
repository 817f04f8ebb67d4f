// Parameters of the pooling kernels. Tensors are row-major planes [planes][height][width]; pairs are {rows,
// columns}.
#ifndef OCLTENSOR_POOL_PARAMS_H
#define OCLTENSOR_POOL_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces;    // of work: elements, rows or planes
  tk_i64 per_item;  // pieces per work-item
  tk_i32 in[2], out[2];
  tk_i32 kernel_size[2], stride[2], padding[2], dilation[2];
  tk_i32 divisor;        // averages: 0: the number of elements that the window counts
  tk_i32 count_padding;  // averages: 1: the window counts padding
} PoolParams;
#endif
