// Parameters of the reduction kernels: two loop nests, innermost dimension first. `kept` walks the outputs,
// `reduced` the elements that make one output. Strides in elements.
#ifndef OCLTENSOR_REDUCE_PARAMS_H
#define OCLTENSOR_REDUCE_PARAMS_H
#include "host_types.h"
#define REDUCE_RANK 8
typedef struct {
  tk_i64 kept_sizes[REDUCE_RANK];
  tk_i64 kept_strides[6][REDUCE_RANK];  // a, b, c, d, first output, second output
  tk_i64 sizes[REDUCE_RANK];
  tk_i64 strides[4][REDUCE_RANK];  // a, b, c, d
  tk_u64 numbers[4];               // bits, in the compute type: s0 .. s3
  tk_i64 kept;                     // outputs (columns.cl: in kept dimensions 1 ..)
  tk_i64 count;                    // elements of an output; reduction_cpu.cl: in reduced dimensions 1 ..
  tk_i64 chunk;                    // of `count`, per piece
  // reduction_cpu.cl: of reduced dimension 0, per piece; reduction_columns.cl: columns per work-item
  tk_i64 inner_chunk;
  // reduction_cpu.cl: pieces of reduced dimension 0; reduction_columns.cl: blocks of columns
  tk_i64 inner_pieces;
  tk_i64 kept_per_item;            // reduction_cpu.cl
  tk_i64 piece_step;               // output elements from one piece's results to the next one's
  tk_i32 kept_rank;
  tk_i32 rank;
  tk_i32 lanes;  // reduction_gpu.cl: work-items that share an output, a power of two
  tk_i32 reserved;
} ReduceParams;
#endif
