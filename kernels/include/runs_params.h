// Parameters of index/runs.cl.
#ifndef OCLTENSOR_RUNS_PARAMS_H
#define OCLTENSOR_RUNS_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 count, block;
  tk_i64 blocks;       // of the target; keys of others have no place there
  tk_i64 source_step;  // 1, or 0 where one number stands for all sources
  tk_u64 alpha;
  tk_i32 extra;  // means: what the target counts for
  tk_i32 reserved;
} RunsParams;
#endif
