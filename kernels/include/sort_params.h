// Parameters of the sorting kernels: rows of `length` entries.
#ifndef OCLTENSOR_SORT_PARAMS_H
#define OCLTENSOR_SORT_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 length;
  tk_i64 part;    // entries that a piece of work takes: a chunk to sort, or a segment of a merged row to write
  tk_i64 parts;   // per row
  tk_i64 run;     // merging: length of the sorted runs
  tk_i64 kept;    // unpacking: entries per row that are wanted
} SortParams;
#endif
