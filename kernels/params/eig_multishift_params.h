// Parameters of the kernels of multishift QR sweeps over one matrix. Strides count elements.
#ifndef OCLTENSOR_EIG_MULTISHIFT_PARAMS_H
#define OCLTENSOR_EIG_MULTISHIFT_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 n;              // the matrix' size
  tk_i64 lo, hi;         // the active block's first and last row
  tk_i64 begin, end;     // rows from `begin` on and columns before `end` are updated
  tk_i64 pairs;          // of shifts
  tk_i64 stage, lag;     // of a sweep; the stages between a chain of bulges and the next one
  tk_i64 chain;          // the first chain that takes part in the stage
  tk_i64 rows;           // of a product that is applied
  tk_i64 part, tiles;    // what it is first applied to, and the work-groups of each part
} EigMultishiftParams;
#endif
