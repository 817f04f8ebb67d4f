// Parameters of attention/weights.cl.
#ifndef OCLTENSOR_ATTENTION_PARAMS_H
#define OCLTENSOR_ATTENTION_PARAMS_H
#include "host_types.h"
#define ATTENTION_BATCH_RANK 8
typedef struct {
  tk_i64 rows, per_item;
  tk_i64 queries, keys;
  tk_i64 batch[ATTENTION_BATCH_RANK];         // sizes, outermost first
  tk_i64 mask_strides[ATTENTION_BATCH_RANK];  // of the batch dimensions
  tk_i64 mask_row, mask_column;
  tk_i32 rank;
  tk_i32 causal;
} AttentionParams;
#endif
