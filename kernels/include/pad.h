// Padding: the place of a work-item in the loop nest, and the part of a row that is moved as it is.
// Defines: M, an integer type of the elements' width, to move them; RANK of the nest; NARROW: elements and
// places are below 2^30; UNIT: strides of dimension 0 are 1.
#ifndef OCLTENSOR_PAD_H
#define OCLTENSOR_PAD_H
#include "types.h"
#include "range.h"
#include "pad_params.h"
#include "quotient.h"

#if NARROW
typedef int place;
#define INDEX uint
#else
typedef long place;
#define INDEX ulong
#endif
#if UNIT
#define TO_STEP 1
#define FROM_STEP 1
#else
#define TO_STEP p.to[0]
#define FROM_STEP p.from[0]
#endif

// Where piece i is along each dimension.
INLINE void split(const PadParams p, long i, place *at) {
  INDEX rest = (INDEX)i;
  UNROLL for (int d = 0; d < RANK - 1; ++d) {
    const INDEX next = QUOTIENT(INDEX, rest, d);
    at[d] = (place)(rest - next * (INDEX)p.steps[d]);
    rest = next;
  }
  at[RANK - 1] = (place)rest;
}

// out[x] = in[x - shift] for x in [low, high)
INLINE void move_row(const PadParams p, __global STYPE(M) *out, __global const STYPE(M) *in, long shift,
                     long low, long high) {
  for (long x = low; x < high; ++x) out[x * TO_STEP] = in[(x - shift) * FROM_STEP];
}
#endif
