// Parameters of pool/fractional.cl; of planes the first size is 1. Numbers are drawn for every plane: [plane,
// dimension].
#ifndef OCLTENSOR_FRACTIONAL_PARAMS_H
#define OCLTENSOR_FRACTIONAL_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i32 in[3], out[3], window[3];
  tk_i32 drawn[3];  // which of a plane's numbers is the dimension's
  tk_i32 dims;      // how many numbers a plane has
} FractionalParams;
#endif
