// Parameters of pool/fractional.cl; for planes the first size is 1. The random numbers are [plane,
// dimension].
#ifndef OCLTENSOR_FRACTIONAL_PARAMS_H
#define OCLTENSOR_FRACTIONAL_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i32 in[3], out[3], window[3];
  tk_i32 drawn[3];  // the position of the dimension's number among the plane's
  tk_i32 dims;      // how many numbers a plane has
} FractionalParams;
#endif
