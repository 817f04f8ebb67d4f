// Parameters of tf32_parts.cl: two operands. Strides count elements.
#ifndef OCLTENSOR_TF32_PARTS_PARAMS_H
#define OCLTENSOR_TF32_PARTS_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 batch_stride, line_stride;
  tk_u64 items;          // work-items: lines of the batch times an eighth of a line
  tk_u64 lines, length;  // of one matrix
} Tf32PartsOperand;
typedef struct {
  Tf32PartsOperand a, b;
} Tf32PartsParams;
#endif
