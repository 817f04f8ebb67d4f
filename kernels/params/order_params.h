// Parameters of index/order.cl.
#ifndef OCLTENSOR_ORDER_PARAMS_H
#define OCLTENSOR_ORDER_PARAMS_H
#include "host_types.h"
// A pass over a digit of keys.
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 count, piece;  // keys, and how many of them a piece of work has
  tk_i64 limit;         // what keys without a place become
  tk_i32 shift, bits;   // of the digit
  tk_i32 first;         // whether keys are as they were given
  tk_i32 reserved;
} OrderParams;
#endif
