// What products of a few rows share on GPUs: which results a work-group computes, and how one is written.
// A work-group computes ROWS rows and some columns of one of `batch` matrices, for one piece of k. PARTIAL:
// it writes its sums in the accumulator's type, as `pieces` matrices of m x n for each of the batch, all of
// the first piece first (split_k_sum.cl).
// Defines: TYPE, FLOATING, WIDE, HAS_S, ROWS, VEC, PARTIAL.
#ifndef OCLTENSOR_SKINNY_H
#define OCLTENSOR_SKINNY_H
#include "matmul_params.h"
#include "raw_vector.h"

#define SKINNY_ARGUMENTS                                                                        \
  __global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,           \
      __global const void *b_base, ulong b_offset, __global const void *s_base, ulong s_offset, \
      const uint pieces, const uint batch, const long length

typedef struct {
  long m, n;    // the first row and column
  long k, end;  // the piece
  uint piece, z;
} Tile;

// Work-groups that read the same columns have adjacent numbers, so that they run at the same time.
INLINE Tile tile_of_group(uint columns, const uint pieces, const long length, const MatmulParams p) {
  const uint row_blocks = (uint)((p.m + ROWS - 1) / ROWS),
             column_blocks = (uint)((p.n + columns - 1) / columns);
  const uint group = get_group_id(0), block = group / row_blocks, rest = block / column_blocks;
  Tile tile;
  tile.m = (long)(group - block * row_blocks) * ROWS;
  tile.n = (long)(block - rest * column_blocks) * columns;
  tile.z = rest / pieces;
  tile.piece = rest - tile.z * pieces;
  tile.k = tile.piece * length;
  tile.end = min((long)p.k, tile.k + length);
  return tile;
}

INLINE void store_sum(__global void *c_base, ulong c_offset, __global const void *s_base, ulong s_offset,
                      acc_t v, Tile tile, long m, long n, const uint batch, const MatmulParams p) {
#if PARTIAL
  __global acc_t *sums = (__global acc_t *)((__global char *)c_base + c_offset);
  sums[(((long)tile.piece * batch + tile.z) * p.m + m) * p.n + n] = v;
#else
  v *= ACC(FROM_BITS(TYPE, p.alpha));
#if HAS_S
  v = MULTIPLY_ADD(
      ACC(FROM_BITS(TYPE, p.beta)),
      ACC(LOAD(TYPE, AT_CONST(TYPE, s_base, s_offset), tile.z * p.s_batch + m * p.s_row + n * p.s_col)), v);
#endif
  STORE(TYPE, AT(TYPE, c_base, c_offset), tile.z * p.c_batch + m * p.c_row + n * p.c_col, TO(TYPE, v));
#endif
}
#endif
