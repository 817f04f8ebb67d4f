// Parameters of bf16_parts.cl: two operands. Strides count elements.
#ifndef OCLTENSOR_BF16_PARTS_PARAMS_H
#define OCLTENSOR_BF16_PARTS_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 batch_stride, line_stride, stride;  // of the float matrix; `stride` along a line
  tk_u64 pieces;                             // work-items: lines of the batch times padded / 8
  tk_u64 bf16_part;                          // elements of one bf16 part
  tk_u64 lines, length, padded;              // lines of one matrix; their length, and in bf16 parts
} Bf16PartsOperand;
typedef struct {
  Bf16PartsOperand a, b;
} Bf16PartsParams;
#endif
