// Parameters of attention without a score matrix (kernels/attention/flash_*.cl).
#ifndef OCLTENSOR_FLASH_PARAMS_H
#define OCLTENSOR_FLASH_PARAMS_H
#include "attention_params.h"
// Strides in elements; rows are contiguous.
typedef struct {
  tk_i64 batch, head, row;
} FlashTensor;
typedef struct {
  // all queries and keys of the heads, which are batch[0] x batch[1]; mask and dropout
  AttentionParams scores;
  tk_i64 heads, groups;    // query heads of one batch; how many of them share a key head
  // of query and key, of value; float operands may be read up to the next multiple of 32
  tk_i64 depth, width;
  FlashTensor query, key, value, out, grad, grad_query, grad_key, grad_value;
  tk_i64 rows;         // forward: queries of a work-item
  tk_i64 keys_at_once; // backward: keys of a work-item
  tk_i64 piece_step;   // backward: elements from one work-item's gradient of the queries to the next one's
  tk_i64 bundle;       // tiles of GPUs: heads that are taken together (attention_order.h)
  tk_u64 scale;        // of the scores, bits
} FlashParams;
typedef struct {
  FlashTensor in;
  tk_i64 heads, rows, depth, column;
} FlashPackParams;
#endif
