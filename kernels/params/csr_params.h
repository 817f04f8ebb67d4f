// Parameters of sparse/csr_*.cl: out[rows][columns] from a matrix of `rows` rows with `entries` entries in
// compressed rows, and a row-major matrix of `inner` rows and `columns` columns. `pieces`: rows on CPU
// drivers, else elements of out; of complex numbers, tiles of rows.
#ifndef OCLTENSOR_CSR_PARAMS_H
#define OCLTENSOR_CSR_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 rows, columns, inner, entries;
} CsrParams;
#endif
