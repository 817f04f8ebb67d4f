// A contiguous tensor seen around one of its dimensions: [outer, n, inner].
#ifndef OCLTENSOR_NEST_PARAMS_H
#define OCLTENSOR_NEST_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 outer, n, inner;
} NestParams;
#endif
