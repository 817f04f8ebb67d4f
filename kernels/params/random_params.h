// Parameters of the random kernels.
#ifndef OCLTENSOR_RANDOM_PARAMS_H
#define OCLTENSOR_RANDOM_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_u64 seed, offset;
  tk_i64 count;    // numbers to draw
  tk_i64 chunks;   // runs of BLOCKS counter blocks that cover them
  tk_i64 per_item; // runs per work-item
  tk_u64 p[4];     // of the distribution
} RandomParams;
#endif
