// Backward of softmax and log-softmax (LOG) of long contiguous rows for GPUs: a work-group takes a row and
// holds its gradient in registers. a: gradient, b: the forward's result, of the same type.
//   COMPUTE, and see whole_rows.h
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "lanes.h"
#define FILL 0
#include "whole_rows.h"

ROW_KERNEL void softmax(__global const void *a_base, ulong a_offset, __global const void *b_base,
                        ulong b_offset, __global void *out_base, ulong out_offset, long n) {
  WHOLE_ROW
  __global const STYPE(A) *grad = AT_CONST(A, a_base, a_offset) + origin;
  __global const STYPE(A) *result = AT_CONST(A, b_base, b_offset) + origin;
  __global STYPE(A) *out = AT(A, out_base, out_offset) + origin;
  uint4 raw[HELD];
  EACH_VECTOR raw[k] = load_piece(grad, PLACE(k), first, end);
  T sum = 0, g[VEC], y[VEC];
  EACH_VECTOR {
    UNPACK_RAW(A, raw[k], g);
#if LOG
    EACH_ELEMENT sum += g[e];
#else
    UNPACK_RAW(A, load_piece(result, PLACE(k), first, end), y);
    EACH_ELEMENT sum += g[e] * y[e];
#endif
  }
  sum = sum_of_lanes(shared, sum, id, id, GROUP, 1);
  EACH_VECTOR {
    UNPACK_RAW(A, raw[k], g);
    UNPACK_RAW(A, load_piece(result, PLACE(k), first, end), y);
    EACH_ELEMENT g[e] = LOG ? g[e] - exp(y[e]) * sum : (g[e] - sum) * y[e];
    store_piece(out, PLACE(k), first, end, g);
  }
}
