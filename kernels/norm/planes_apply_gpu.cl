// Applies normalisation for GPUs: a work-item takes four elements at distances of the work-group size.
// CHANNELS_INNER: the plane of element i is i % planes, else i / n % planes. INDEX: uint, or ulong for 2^31
// elements and more.
#include "apply_formula.h"

__kernel void apply(APPLY_ARGUMENTS, ulong total_, ulong n, ulong planes_) {
  __global const T *table = AT_CONST(COMPUTE, table_base, table_offset);
  __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset);
  __global const STYPE(DY) *dy = AT_CONST(DY, dy_base, dy_offset);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
  const INDEX total = total_, planes = planes_, step = get_local_size(0);
  const INDEX first = (INDEX)get_group_id(0) * step * 4 + get_local_id(0);
  T a[4], b[4];
  UNROLL for (int k = 0; k < 4; ++k) {
    const INDEX i = min(first + k * step, total - 1);
    a[k] = LOAD(X, x, i);
#ifdef BACKWARD
    b[k] = LOAD(DY, dy, i);
#endif
  }
  UNROLL for (int k = 0; k < 4; ++k) {
    const INDEX i = first + k * step;
    if (i >= total) break;
#ifdef CHANNELS_INNER
    const INDEX p = i % planes;
#else
    const INDEX p = i / (INDEX)n % planes;
#endif
    T q[NUMBERS];
    UNROLL for (int j = 0; j < NUMBERS; ++j) q[j] = table[j * planes + p];
    STORE(OUT, out, i, FORMULA(a[k], b[k], q));
  }
}
