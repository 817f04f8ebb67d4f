// Parameters of copy/pad.cl: a loop nest over the tensor that is written, innermost dimension first.
#ifndef OCLTENSOR_PAD_PARAMS_H
#define OCLTENSOR_PAD_PARAMS_H
#include "host_types.h"
#define PAD_RANK 6
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 chunk;                      // elements along dimension 0 that are a piece
  tk_i64 steps[PAD_RANK];            // pieces along each dimension
  tk_i64 sizes[PAD_RANK];            // of the tensor before padding
  tk_i64 padded[PAD_RANK];           // and after it
  tk_i64 before[PAD_RANK];           // places before the first element; negative: elements that are cut off
  tk_i64 begin[PAD_RANK];            // from here on to `end`, what is written is one element that is read:
  tk_i64 end[PAD_RANK];              // the one that is as far from its first as padding shifts it
  tk_i64 to[PAD_RANK], from[PAD_RANK];  // strides of the tensors that are written and read, in elements
  tk_u64 multipliers[PAD_RANK];      // for division by `steps` (quotient.h)
  tk_u32 shifts[PAD_RANK];
} PadParams;
#endif
