// Parameters of loss/multilabel_margin.cl.
#ifndef OCLTENSOR_MARGIN_PARAMS_H
#define OCLTENSOR_MARGIN_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 classes;
  tk_i64 divisor;  // of a loss
} MarginParams;
#endif
