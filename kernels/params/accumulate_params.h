// Parameters of index/accumulate.cl: sources [groups][length][block] are added to the blocks of a target that
// the keys select; different groups never share a block.
#ifndef OCLTENSOR_ACCUMULATE_PARAMS_H
#define OCLTENSOR_ACCUMULATE_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 groups, length, block;
  tk_i64 key_step;     // keys from group to group; 0: all groups have the same keys
  tk_i64 target_step;  // blocks from group to group; 0: keys are absolute
  tk_i64 source_step;  // 1, or 0 if one number is used for all sources
  tk_i64 piece_blocks;  // CPU style: target blocks of a piece of a group; 0: the group is one piece
  tk_i64 group_pieces;  // pieces of a group
  tk_u64 alpha;        // bits, in the target's type: factor of the sources
} AccumulateParams;
#endif
