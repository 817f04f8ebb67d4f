// Parameters of hopper_split.cl: two operands. Strides count elements.
#ifndef OCLTENSOR_SPLIT_PARAMS_H
#define OCLTENSOR_SPLIT_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 batch_stride, line_stride, stride;  // of the float matrix; `stride` along a line
  tk_u64 pieces;                             // work-items: lines of the batch times padded / 8
  tk_u64 plane;                              // elements of one plane
  tk_u64 lines, length, padded;              // lines of one matrix; their length, and in planes
} SplitOperand;
typedef struct {
  SplitOperand a, b;
} SplitParams;
#endif
