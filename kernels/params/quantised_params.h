// Parameters of quantised/*.cl: y[m][n] = sum over k of x[m][k] w[n][k], + bias[n], of a weight in one of the
// formats of src/base/weight_formats.def. Strides count elements, `pitch` (of rows) and `end` (of all) bytes.
// A group has 2^shift elements, a tile 2^tile columns. `first`: where unpacking begins, a row, or an element
// of a flat layout.
#ifndef OCLTENSOR_QUANTISED_PARAMS_H
#define OCLTENSOR_QUANTISED_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 m, n, k;
  tk_i64 x_row, bias_step;
  tk_i64 pitch, end, shift, tile;
  tk_i64 scale_row, scale_group;
  tk_i64 zero_row, zero_group;
  tk_i64 first, pieces, per_item;
} QuantisedParams;
#endif
