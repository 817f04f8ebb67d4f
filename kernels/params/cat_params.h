// Parameters of multi_tensor/cat.cl: a result [outer][line] from sources [outer][starts[k + 1] - starts[k]],
// in units of A.
#ifndef OCLTENSOR_CAT_PARAMS_H
#define OCLTENSOR_CAT_PARAMS_H
#include "host_types.h"
#define CAT_SOURCES 8
typedef struct {
  tk_i64 outer, line;
  // of the sources in a line of the result; entries without a source: the last source's end
  tk_i64 starts[CAT_SOURCES + 1];
} CatParams;
#endif
