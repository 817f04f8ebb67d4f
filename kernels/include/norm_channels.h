// What the kernels channels_last_gpu*.cl share: which part of a matrix [rows][channels] a work-item has, and
// sums over the rows of a work-group. An item has VEC adjacent channels of every LANES-th row of a piece, so
// that a work-group reads COLUMNS * VEC adjacent elements of LANES rows.
//   GROUP: work-group size; VEC: elements of a vector; COLUMNS: vectors of a row that a work-group has, a
//   power of two; INDEX: type of element counts (uint, or ulong from 2^31 on)
#ifndef OCLTENSOR_NORM_CHANNELS_H
#define OCLTENSOR_NORM_CHANNELS_H
#include "norm_channels_params.h"
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "element_vectors.h"
#include "lanes.h"
#include "norm_operands.h"

#define SIZED __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#define LANES (GROUP / COLUMNS)
#define EACH_VECTOR UNROLL for (int k = 0; k < BLOCK; ++k)
#define EACH_CHANNEL UNROLL for (int j = 0; j < VEC; ++j)

// The item's first channel c, its lane, and rows [first, end) of its piece. Items past the last channel
// (`here` is false) read what others read, and write nothing.
#define PLACE                                                                      \
  const uint id = get_local_id(0), lane = id / COLUMNS;                            \
  const INDEX piece = get_group_id(1), channels = p.channels;                      \
  const INDEX place = (INDEX)get_group_id(0) * COLUMNS + id % COLUMNS;             \
  const bool here = place * VEC < channels;                                        \
  const INDEX c = here ? place * VEC : 0, first = piece * (INDEX)p.piece;          \
  const INDEX end = min((INDEX)p.rows, (INDEX)(first + p.piece));
// Of the rows row, row + LANES .. of a block: how many there are, and where row k is, or one that exists.
#define ROWS_LEFT(row) (int)min((INDEX)BLOCK, (INDEX)((end - (row) + LANES - 1) / LANES))
#define AT_ROW(row, k, n) (((row) + ((k) < (n) ? (k) : 0) * LANES) * channels + c)

// v = the sums of v over the group's lanes, in all of them. Every item of the group must call it.
INLINE void add_lanes(__local T *shared, T *v, uint id, uint lane) {
  barrier(CLK_LOCAL_MEM_FENCE);
  EACH_CHANNEL shared[j * GROUP + id] = v[j];
  for (uint far = LANES / 2; far > 0; far /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < far) EACH_CHANNEL shared[j * GROUP + id] += shared[j * GROUP + id + far * COLUMNS];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  EACH_CHANNEL v[j] = shared[j * GROUP + id % COLUMNS];
}

// For `merge`, whose items have one of MERGED channels each: the lanes share the pieces of a channel.
#define MERGED 8
#define PLACE_TO_MERGE                                                                         \
  __local T shared[GROUP];                                                                     \
  const uint id = get_local_id(0), lane = id / MERGED, lanes = GROUP / MERGED;                 \
  const INDEX place = (INDEX)get_group_id(0) * MERGED + id % MERGED, pieces = p.pieces;        \
  const bool here = place < (INDEX)p.channels;                                                 \
  const INDEX c = here ? place : 0;                                                            \
  __global const STYPE(COMPUTE) *partials = AT_CONST(COMPUTE, partials_base, partials_offset);
#define SUM_OF_LANES(v) sum_of_lanes(shared, v, id, lane, lanes, MERGED)

// Partial sums: two numbers of each channel for each piece.
#define PARTIAL(which, piece, c) ((2 * (piece) + (which)) * (INDEX)p.channels + (c))
#endif
