// Parameters of attention on Hopper's matrix units (kernels/nvidia_hopper/attention/forward.cl).
#ifndef OCLTENSOR_ATTENTION_HOPPER_PARAMS_H
#define OCLTENSOR_ATTENTION_HOPPER_PARAMS_H
#include "flash_params.h"
// Strides in elements, multiples of 8. `heads` and `batches`: 0 if one is shared by all; the stride is then
// any positive number.
typedef struct {
  FlashTensor stride;
  tk_i64 heads, batches;
} HopperTensor;
typedef struct {
  HopperTensor query, key, value;
  FlashTensor out;
  tk_i64 heads, groups;                 // query heads of one batch; how many of them share a key head
  tk_i64 queries, keys, depth;
  tk_i64 all_heads, row_tiles, tiles;   // of all batches; tiles of a head's queries, and of all
  tk_i64 bundle;                        // heads processed together, whose keys and values fit the cache
  tk_u64 scale;                         // of the scores: bits
  tk_i64 sums;                          // 1: write the log-sum-exp
  HopperTensor mask;                    // where the copy engine brings it
  tk_i64 mask_rows;                     // there: a box's rows, 1 if all queries share one
  tk_i64 mask_in_pairs;                 // elsewhere, 1: two adjacent keys' elements are one load
  AttentionParams scores;               // mask and dropout
} AttentionHopperParams;
// A pass of backward. `kept`: the operands of which a work-group keeps rows; `streamed`: those that
// it goes through.
typedef struct {
  HopperTensor kept[2], streamed[2];    // key, value; query, gradient of the result: or the other way round
  FlashTensor out[2];                   // gradients of the kept operands: of key and value, or of query
  tk_i64 heads, groups;                 // of the kept operands; query heads that share a key head
  tk_i64 kept_rows, streamed_rows, depth;
  tk_i64 padded;                        // queries of a head in the statistics, a multiple of 128
  tk_i64 all_heads, row_tiles, tiles, bundle;
  tk_u64 scale, score_scale;            // of gradients of scores; of scores: bits
  tk_i64 wanted[2];
  HopperTensor mask;                    // as above
  tk_i64 mask_rows, mask_in_pairs;
  AttentionParams scores;               // mask and dropout
} AttentionHopperBackwardParams;
typedef struct {
  FlashTensor out, grad;
  tk_i64 heads, queries, padded, depth;
  tk_i64 with_query;                    // 1: the sums of the query's gradient become 0
  tk_u64 delta_factor;                  // 2 (1 - p) with dropout, or 1; bits
  tk_u64 unit;                          // of a log-sum-exp: bits of log2(e), or with a mask of numbers of 1
} AttentionHopperRowsParams;
typedef struct {
  FlashTensor out;
  tk_i64 heads, queries, padded, depth;
  tk_u64 scale;                         // of gradients of scores: bits
} AttentionHopperQueryParams;
#endif
