// Parameters of rnn/*.cl: rows (a batch) of `hidden` numbers, each row in `per_row` pieces.
#ifndef OCLTENSOR_RNN_PARAMS_H
#define OCLTENSOR_RNN_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 hidden, per_row;
} RnnParams;
#endif
