// What products of a few rows share on GPUs: which results a work-group computes, and how one is written.
// A work-group computes ROWS rows and some columns of one of `batch` matrices, for one piece of k. PARTIAL:
// it writes its sums in the accumulator's type, as `pieces` matrices of m x n for each of the batch, all of
// the first piece first (split_k_sum.cl).
// Defines: TYPE, FLOATING, WIDE (accumulator.h); A_TYPE, B_TYPE, RESULT; ROWS, VEC, PARTIAL; ADD_SELF (0, 1)
// and those of epilogue.h.
#ifndef OCLTENSOR_SKINNY_H
#define OCLTENSOR_SKINNY_H
#include "raw_vector.h"
#include "epilogue.h"

#define SKINNY_ARGUMENTS                                                                        \
  __global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,           \
      __global const void *b_base, ulong b_offset, __global const void *s_base, ulong s_offset, \
      SCALE_PARAMETERS const uint pieces, const uint batch, const long length

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

INLINE void store_sum(__global void *c_base, ulong c_offset, acc_t sum, const Epilogue end, Tile tile, long m,
                      long n, const uint batch, const MatmulParams p) {
#if PARTIAL
  __global acc_t *sums = (__global acc_t *)((__global char *)c_base + c_offset);
  sums[(((long)tile.piece * batch + tile.z) * p.m + m) * p.n + n] = sum;
#else
  STORE(RESULT, AT(RESULT, c_base, c_offset), tile.z * p.c_batch + m * p.c_row + n * p.c_col,
        TO(RESULT, ended(sum, m, n, end)));
#endif
}
#endif
