// Parameters of attention's backward by mma.sync (kernels/nvidia_mma/attention/backward*.cl).
#ifndef OCLTENSOR_ATTENTION_MMA_BACKWARD_PARAMS_H
#define OCLTENSOR_ATTENTION_MMA_BACKWARD_PARAMS_H
#include "flash_params.h"
// One of the two passes. `kept`: the operands of which a work-group keeps rows; `streamed`: those that it
// goes through. Strides count elements.
typedef struct {
  AttentionParams scores;  // mask, dropout, lengths
  FlashTensor kept[2], streamed[2];  // key, value; query, gradient of the result: or the other way round
  FlashTensor out[2];                // gradients of the kept operands: of key and value, or of query
  tk_i64 heads, groups;              // query heads of one batch; how many of them share a key head
  tk_i64 depth, width;
  tk_i64 padded;                     // queries of a head in the statistics
  tk_u64 scale;                      // of the scores, bits
  tk_i64 wanted[2];
} AttentionMmaBackwardParams;
typedef struct {
  FlashTensor out, grad;
  tk_i64 heads, queries, padded, width;
  tk_u64 kept;  // 1 - p of dropout, bits
  tk_u64 unit;  // of a log-sum-exp: bits of log2(e), or with a mask of numbers of 1
} AttentionMmaRowsParams;
#endif
