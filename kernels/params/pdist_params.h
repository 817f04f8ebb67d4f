// Parameters of distance/pdist.cl: `rows` of `columns` numbers, and a number for each pair i < j: (0, 1), (0,
// 2), ...
#ifndef OCLTENSOR_PDIST_PARAMS_H
#define OCLTENSOR_PDIST_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 rows, columns;
  tk_u64 p;  // bits, in the type to compute in
} PdistParams;
#endif
