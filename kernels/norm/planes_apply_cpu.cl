// Applies normalisation for CPU drivers. CHANNELS_INNER: a row is the channels of one position, each of them
// of another plane; else a row is a plane, row r that of index r % planes. A work-item takes one chunk of
// each of `per` rows.
#include "apply_formula.h"

ONE_ITEM __kernel void apply(APPLY_ARGUMENTS, long rows, long n, long planes, long per, long chunk) {
  __global const T *table = AT_CONST(COMPUTE, table_base, table_offset);
  const long first = get_global_id(0) * per, i0 = get_global_id(1) * chunk, i1 = min(n, i0 + chunk);
  for (long r = first; r < min(rows, first + per); ++r) {
    __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset) + r * n;
    __global const STYPE(DY) *dy = AT_CONST(DY, dy_base, dy_offset) + r * n;
    __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + r * n;
    T16 q[NUMBERS];
    T one[NUMBERS];
    long i = i0;
#ifndef CHANNELS_INNER
    UNROLL for (int k = 0; k < NUMBERS; ++k) one[k] = table[k * planes + r % planes];
    UNROLL for (int k = 0; k < NUMBERS; ++k) q[k] = (T16)(one[k]);
#endif
    for (; i + 16 <= i1; i += 16) {
#ifdef CHANNELS_INNER
      UNROLL for (int k = 0; k < NUMBERS; ++k) q[k] = vload16(0, table + k * planes + i);
#endif
#ifdef BACKWARD
      STORE16(OUT, out, i, FORMULA(LOAD16(X, x, i), LOAD16(DY, dy, i), q));
#else
      STORE16(OUT, out, i, FORMULA(LOAD16(X, x, i), 0, q));
#endif
    }
    ROLLED for (; i < i1; ++i) {
#ifdef CHANNELS_INNER
      UNROLL for (int k = 0; k < NUMBERS; ++k) one[k] = table[k * planes + i];
#endif
#ifdef BACKWARD
      STORE(OUT, out, i, FORMULA(LOAD(X, x, i), LOAD(DY, dy, i), one));
#else
      STORE(OUT, out, i, FORMULA(LOAD(X, x, i), 0, one));
#endif
    }
  }
}
