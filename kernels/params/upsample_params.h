// Parameters of the upsampling kernels: planes of in[0] x in[1] and out[0] x out[1] elements.
#ifndef OCLTENSOR_UPSAMPLE_PARAMS_H
#define OCLTENSOR_UPSAMPLE_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i32 in[2], out[2];
  tk_u64 step[2];  // bits: input positions per output position; float for nearest, else REAL
} UpsampleParams;
#endif
