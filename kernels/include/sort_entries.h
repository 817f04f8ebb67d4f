// The entries of sorting on CPU drivers: (key, position) for each element, in a total order. Keys are those
// of sort_key.h; positions decide between equal keys, so that the sort is stable.
#ifndef OCLTENSOR_SORT_ENTRIES_H
#define OCLTENSOR_SORT_ENTRIES_H
#include "sort_key.h"
#include "sort_params.h"

#if WIDTH == 64
typedef ulong2 E;
#define LESS(a, b) ((a).x < (b).x || ((a).x == (b).x && (a).y < (b).y))
#define ENTRY(key, at) ((ulong2)(key, (ulong)(at)))
#define POSITION(e) ((long)(e).y)
#define LARGEST ((ulong2)(ULONG_MAX))
#else
typedef ulong E;
#define LESS(a, b) ((a) < (b))
#define ENTRY(key, at) ((ulong)(key) << 32 | (uint)(at))
#define POSITION(e) ((long)((e) & 0xffffffffu))
#define LARGEST ULONG_MAX
#endif

// Merges the sorted runs from[a, middle) and from[b, end) into to[at, stop).
INLINE void merge_into(__global E *to, __global const E *from, long a, long middle, long b, long end, long at,
                       long stop) {
  for (; at < stop; ++at) {
    const bool left = b >= end || (a < middle && LESS(from[a], from[b]));
    to[at] = left ? from[a] : from[b];
    a += left;
    b += !left;
  }
}

// Sorts 16 entries by exchanges.
INLINE void exchange16(E e[16]) {
  UNROLL for (int round = 0; round < 16; ++round) {
    UNROLL for (int k = round & 1; k + 1 < 16; k += 2) {
      const E low = e[k], high = e[k + 1];
      const bool swap = LESS(high, low);
      e[k] = swap ? high : low;
      e[k + 1] = swap ? low : high;
    }
  }
}

// Sorts entries [low, high), which are sorted in runs of 16, by merges between two buffers; returns the
// buffer with the result.
INLINE __global E *merge_runs(__global E *entries, __global E *spare, long low, long high) {
  __global E *from = entries, *to = spare;
  for (long run = 16; run < high - low; run *= 2) {
    for (long a = low; a < high; a += 2 * run) {
      const long middle = min(high, a + run), end = min(high, a + 2 * run);
      merge_into(to, from, a, middle, middle, end, a, end);
    }
    __global E *swap = from;
    from = to;
    to = swap;
  }
  return from;
}
#endif
