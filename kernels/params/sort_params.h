// Parameters of the sorting kernels: rows of `length` elements.
#ifndef OCLTENSOR_SORT_PARAMS_H
#define OCLTENSOR_SORT_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 length;
  tk_i64 entries;  // per row: `length`, or the number that sort_select.cl leaves
  tk_i64 piece;  // entries that a piece of work takes: a chunk to sort, or a segment of a merged row to write
  tk_i64 row_pieces;  // pieces of a row
  tk_i64 run;     // merging: length of the sorted runs
  tk_i64 kept;    // entries per row, selecting: per piece, that are wanted
  tk_i64 room;    // selecting: entries that a work-item's buffers hold, a multiple of 16
} SortParams;
#endif
