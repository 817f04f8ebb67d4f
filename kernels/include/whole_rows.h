// Long contiguous rows that a work-group of GROUP items holds in registers, as HELD vectors of 16 bytes per
// item. Vectors start at multiples of 16 bytes in memory, so that the first and last one of a row may hold
// elements of its neighbours: those are read as FILL and not written. A: the type of all tensors; VEC: its
// elements in 16 bytes; FILL: bits of an element. Needs T.
#ifndef OCLTENSOR_WHOLE_ROWS_H
#define OCLTENSOR_WHOLE_ROWS_H
#define TYPE A
#define FLOATING 1
#include "element_vectors.h"
#include "raw_vector.h"
#if VEC == 8
typedef ushort Word;
#else
typedef uint Word;
#endif
#define EACH_VECTOR UNROLL for (int k = 0; k < HELD; ++k)
#define EACH_ELEMENT UNROLL for (int e = 0; e < VEC; ++e)

// The group's row: elements `first` to `end` from the element `origin` on, at which a vector starts.
#define WHOLE_ROW                                                                                        \
  __local T shared[GROUP];                                                                               \
  const uint id = get_local_id(0);                                                                       \
  const long origin = get_group_id(0) * n / VEC * VEC;                                                   \
  const int first = (int)(get_group_id(0) * n - origin), end = first + (int)n;
// Where the item's vector k starts.
#define PLACE(k) ((int)((k) * GROUP + id) * VEC)

INLINE uint4 load_piece(__global const STYPE(A) *row, int place, int first, int end) {
  if (place >= first && place + VEC <= end) return *(__global const uint4 *)(row + place);
  uint4 raw;
  EACH_ELEMENT((Word *)&raw)[e] =
      place + e >= first && place + e < end ? ((__global const Word *)row)[place + e] : (Word)(FILL);
  return raw;
}

INLINE void store_piece(__global STYPE(A) *row, int place, int first, int end, const T *v) {
  if (place >= first && place + VEC <= end) {
    STOREV(A, row, place, v);
    return;
  }
  EACH_ELEMENT if (place + e >= first && place + e < end) STORE(A, row, place + e, v[e]);
}
#endif
