// Parameters of sort/order_statistic.cl.
#ifndef OCLTENSOR_ORDER_STATISTIC_PARAMS_H
#define OCLTENSOR_ORDER_STATISTIC_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 length;  // of a row
  tk_i64 wanted;  // the place in the sorted row, unless a median is computed
} OrderStatisticParams;
#endif
