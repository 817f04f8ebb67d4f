// Parameters of index/order.cl.
#ifndef OCLTENSOR_ORDER_PARAMS_H
#define OCLTENSOR_ORDER_PARAMS_H
#include "host_types.h"
// A pass over a digit of keys.
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 count, piece;  // keys, and how many of them a piece of work has
  tk_i64 limit;         // the value that replaces keys without a place
  tk_i32 shift, bits;   // of the digit
  tk_i32 first;         // 1: the first pass, which reads the keys as given
  tk_i32 reserved;
} OrderParams;
#endif
