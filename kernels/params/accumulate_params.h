// Parameters of index/accumulate.cl: sources [groups][length][block] go to blocks of a target that keys name;
// different groups never meet in a block.
#ifndef OCLTENSOR_ACCUMULATE_PARAMS_H
#define OCLTENSOR_ACCUMULATE_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 groups, length, block;
  tk_i64 key_step;     // keys from group to group; 0: all have the same
  tk_i64 target_step;  // blocks from group to group; 0: keys are absolute
  tk_i64 source_step;  // 1, or 0 where one number stands for all sources
  tk_i64 part;         // Rows: target blocks per piece of work within a group; 0: the group is one piece
  tk_i64 parts;        // per group
  tk_u64 alpha;        // bits, in the target's type: factor of the sources
} AccumulateParams;
#endif
