// softmax and log-softmax (LOG) of long contiguous rows for GPUs: several work-groups share a row, in chunks
// of at most GROUP * HELD elements; an item loads all its elements at once. softmax_partial writes every
// chunk's maximum and the sum relative to it, softmax_apply combines them and reads the row again.
//   COMPUTE, A (input), OUT, GROUP (work-group size)
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "lanes.h"
#include "long_rows.h"

// Loads the item's elements of the chunk, -infinity past its end.
#define LOAD_CHUNK(x)                                                                                      \
  T x[HELD];                                                                                               \
  UNROLL for (int k = 0; k < HELD; ++k) x[k] = IN_CHUNK(k) ? LOAD(A, in, PLACE(k)) : -INFINITY;

ROW_KERNEL void softmax_partial(__global const void *a_base, ulong a_offset, __global void *partial_base,
                                ulong partial_offset, long n, long pieces, long chunk) {
  CHUNK_OF_ROW
  __global const STYPE(A) *in = AT_CONST(A, a_base, a_offset) + start;
  LOAD_CHUNK(x)
  T top = -INFINITY, sum = 0;
  UNROLL for (int k = 0; k < HELD; ++k) top = x[k] > top ? x[k] : top;
  top = max_of_lanes(shared, top, id, id, GROUP, 1);
  // A chunk of only -infinity has the sum 0. A NaN makes the sum NaN.
  const T shift = top == -INFINITY ? 0 : top;
  UNROLL for (int k = 0; k < HELD; ++k) sum += exp(x[k] - shift);
  sum = sum_of_lanes(shared, sum, id, id, GROUP, 1);
  __global T *partials = AT(COMPUTE, partial_base, partial_offset);
  if (id == 0) {
    partials[2 * group] = top;
    partials[2 * group + 1] = sum;
  }
}

ROW_KERNEL void softmax_apply(__global const void *a_base, ulong a_offset, __global const void *partial_base,
                              ulong partial_offset, __global void *out_base, ulong out_offset, long n,
                              long pieces, long chunk) {
  CHUNK_OF_ROW
  __global const STYPE(A) *in = AT_CONST(A, a_base, a_offset) + start;
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + start;
  LOAD_CHUNK(x)
  __global const T *partials = AT_CONST(COMPUTE, partial_base, partial_offset) + 2 * row * pieces;
  T top = -INFINITY, sum = 0;
  for (long s = id; s < pieces; s += GROUP) top = partials[2 * s] > top ? partials[2 * s] : top;
  top = max_of_lanes(shared, top, id, id, GROUP, 1);
  for (long s = id; s < pieces; s += GROUP)
    sum += partials[2 * s] == -INFINITY ? partials[2 * s + 1]
                                        : partials[2 * s + 1] * exp(partials[2 * s] - top);
  sum = sum_of_lanes(shared, sum, id, id, GROUP, 1);
  const T last = LOG ? log(sum) : (T)1 / sum;
  UNROLL for (int k = 0; k < HELD; ++k)
    if (IN_CHUNK(k)) STORE(OUT, out, PLACE(k), LOG ? x[k] - top - last : exp(x[k] - top) * last);
}
