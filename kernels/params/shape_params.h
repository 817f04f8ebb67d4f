// A shape as a kernel argument.
#ifndef OCLTENSOR_SHAPE_PARAMS_H
#define OCLTENSOR_SHAPE_PARAMS_H
#include "host_types.h"
#define SHAPE_RANK 64
typedef struct {
  tk_i64 sizes[SHAPE_RANK];
} ShapeParams;
#endif
