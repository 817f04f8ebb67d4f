// Parameters of index/move.cl: a loop nest, innermost dimension first, over a tensor that is traversed
// directly, one that is indexed, and the index.
#ifndef OCLTENSOR_INDEXED_PARAMS_H
#define OCLTENSOR_INDEXED_PARAMS_H
#include "host_types.h"
#define INDEXED_RANK 8
typedef struct {
  tk_i64 sizes[INDEXED_RANK];
  tk_i64 strides[3][INDEXED_RANK];  // direct, indexed, index; in elements
  tk_i64 first[3];                  // where the nest begins, in elements
  tk_i64 size, step;                // of the indexed dimension
  tk_i64 rows;                      // product of sizes[1 ..]
  tk_i64 chunk, rows_per_item;      // CPU style: the work of a work-item
  tk_i32 rank;
  tk_i32 wrap;  // negative indices count from the end
} IndexedParams;
#endif
