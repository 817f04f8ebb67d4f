// Parameters of index/runs.cl.
#ifndef OCLTENSOR_RUNS_PARAMS_H
#define OCLTENSOR_RUNS_PARAMS_H
#include "host_types.h"
// Entries in the order of their keys, divided into chunks. An entry has `lanes` numbers, which are in blocks.
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 count, chunk, chunks;  // entries; in a chunk; chunks
  tk_i64 all;                   // entries of the first level, which level 0 sorted
  tk_i64 lanes, block;
  tk_i64 blocks;       // blocks of the target; other keys have no place there
  tk_i64 length;       // blocks of sources from one block of lanes to the next
  tk_i64 target_step;  // the same for the target
  tk_i64 source_step;  // 1, or 0 if one number is used for all sources
  tk_i64 factors_each;  // successive factors for the same source
  tk_u64 alpha;
  tk_i32 extra;  // means: added to the count, for the target's own value
  tk_i32 reserved;
} RunsParams;
#endif
