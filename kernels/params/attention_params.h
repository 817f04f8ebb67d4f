// Parameters of the attention kernels: a block of scores [matrices][queries][keys], of queries first .. first
// + queries - 1 of all_queries, and of the batch's matrices from first_matrix on.
#ifndef OCLTENSOR_ATTENTION_PARAMS_H
#define OCLTENSOR_ATTENTION_PARAMS_H
#include "host_types.h"
#define ATTENTION_BATCH_RANK 8
typedef struct {
  tk_i64 rows, per_item;
  tk_i64 queries, keys;
  tk_i64 first, all_queries;
  tk_i64 first_matrix;
  tk_i64 batch[ATTENTION_BATCH_RANK];         // sizes, outermost first
  tk_i64 mask_strides[ATTENTION_BATCH_RANK];  // of the batch dimensions
  tk_i64 mask_row, mask_column;
  tk_u64 seed, offset;   // dropout (philox.h): key, and first counter of all; together, for graphs
  tk_i64 pair_counters;  // of a pair of rows, two for 16 keys
  tk_u64 kept_scale;     // 1 / (1 - p), bits in the compute type
  tk_u32 dropped[4];     // p's 8 upper bits: word w has bit w in its lower half, bit 4 + w in the other
  tk_u64 dropped_rest;   // its other bits, in units of 2^-40
  tk_i32 rank;
  tk_i32 causal;
} AttentionParams;
#endif
