// Parameters of attention on Hopper's matrix units (kernels/attention/hopper.cl).
#ifndef OCLTENSOR_ATTENTION_HOPPER_PARAMS_H
#define OCLTENSOR_ATTENTION_HOPPER_PARAMS_H
#include "flash_params.h"
// In elements, multiples of 8. `heads` and `batches`: 0 where one is for all, whose stride is then any positive one.
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
  tk_i64 bundle;                        // heads worked on together: their keys and values fit the cache
  tk_u64 scale;                         // of the scores, times log2(e): bits
  tk_i64 sums;                          // is the log-sum-exp wanted?
} AttentionHopperParams;
#endif
