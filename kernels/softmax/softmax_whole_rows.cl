// softmax and log-softmax (LOG) of long contiguous rows for GPUs: a work-group takes a row, reads it once and
// holds it in registers.
//   COMPUTE, and see whole_rows.h
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "lanes.h"
#define MINUS_INFINITY_f32 0xff800000u
#define MINUS_INFINITY_bf16 0xff80
#define MINUS_INFINITY_f16 0xfc00
#define FILL CAT(MINUS_INFINITY_, A)
#include "whole_rows.h"

ROW_KERNEL void softmax(__global const void *a_base, ulong a_offset, __global void *out_base,
                        ulong out_offset, long n) {
  WHOLE_ROW
  __global const STYPE(A) *in = AT_CONST(A, a_base, a_offset) + origin;
  __global STYPE(A) *out = AT(A, out_base, out_offset) + origin;
  uint4 raw[HELD];
  EACH_VECTOR raw[k] = load_piece(in, PLACE(k), first, end);
  T top = -INFINITY, sum = 0, x[VEC];
  EACH_VECTOR {
    UNPACK_RAW(A, raw[k], x);
    EACH_ELEMENT top = x[e] > top ? x[e] : top;
  }
  top = max_of_lanes(shared, top, id, id, GROUP, 1);
  // A row of only -infinity has the sum 0. A NaN makes the sum NaN.
  const T shift = top == -INFINITY ? 0 : top;
  EACH_VECTOR {
    UNPACK_RAW(A, raw[k], x);
    EACH_ELEMENT sum += exp(x[e] - shift);
  }
  sum = sum_of_lanes(shared, sum, id, id, GROUP, 1);
  const T last = LOG ? log(sum) : (T)1 / sum;
  EACH_VECTOR {
    UNPACK_RAW(A, raw[k], x);
    EACH_ELEMENT x[e] = LOG ? x[e] - top - last : exp(x[e] - top) * last;
    store_piece(out, PLACE(k), first, end, x);
  }
}
