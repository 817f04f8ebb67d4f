// Merge sort of rows. An element becomes an entry (key, position) whose order is total: keys order as ATen's elements do
// (NaN above everything, -0 equal to 0; DESCENDING: the other way round) and positions decide between equal ones, so that
// the sort is stable. KEY: 0 integers to 32 bits, 1 floats to 32 bits, 2 int64, 3 float64, 4 int64 read as unsigned.
// BITS: the integer type as wide as A.
//   sort_chunks   entries of each chunk, sorted by one work-item: 16 by exchanges, then merges between two buffers
//   merge         pairs of sorted runs into one; a work-item finds and writes its own segment
//   unpack        values and positions of the first entries of each row
#include "types.h"
#include "range.h"
#include "sort_params.h"

typedef CTYPE(A) T;
#if KEY >= 2
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

#if KEY == 0
INLINE uint ascending(T v) { return (uint)(int)v ^ 0x80000000u; }
#elif KEY == 1
INLINE uint ascending(T v) {
  const uint u = v == 0 ? 0 : as_uint(v);
  return v != v ? 0xffffffffu : u ^ (u >> 31 ? 0xffffffffu : 0x80000000u);
}
#elif KEY == 2
INLINE ulong ascending(T v) { return (ulong)v ^ 0x8000000000000000ul; }
#elif KEY == 3
INLINE ulong ascending(T v) {
  const ulong u = v == 0 ? 0 : as_ulong(v);
  return v != v ? ULONG_MAX : u ^ (u >> 63 ? ULONG_MAX : 0x8000000000000000ul);
}
#else
INLINE ulong ascending(T v) { return (ulong)v; }
#endif
#if DESCENDING
#define KEY_OF(v) (~ascending(v))
#else
#define KEY_OF(v) ascending(v)
#endif

// Sorted runs from[a, middle) and from[middle, end) into to[at, stop): `at` is where the first of them belong.
INLINE void merge_into(__global E *to, __global const E *from, long a, long middle, long b, long end, long at,
                       long stop) {
  for (; at < stop; ++at) {
    const bool left = b >= end || (a < middle && LESS(from[a], from[b]));
    to[at] = left ? from[a] : from[b];
    a += left;
    b += !left;
  }
}

INLINE void sort16(__global E *to, __global const STYPE(A) *in, long first, int count) {
  E e[16];
  UNROLL for (int k = 0; k < 16; ++k) {
    e[k] = LARGEST;
    if (k < count) e[k] = ENTRY(KEY_OF(LOAD(A, in, first + k)), first + k);
  }
  UNROLL for (int round = 0; round < 16; ++round) {
    UNROLL for (int k = round & 1; k + 1 < 16; k += 2) {
      const E low = e[k], high = e[k + 1];
      const bool swap = LESS(high, low);
      e[k] = swap ? high : low;
      e[k + 1] = swap ? low : high;
    }
  }
  UNROLL for (int k = 0; k < 16; ++k)
    if (k < count) to[first + k] = e[k];
}

GROUP __kernel void sort_chunks(__global void *entry_base, ulong entry_offset, __global void *spare_base,
                                ulong spare_offset, __global const void *in_base, ulong in_offset, const SortParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / p.parts, low = (i - row * p.parts) * p.part, high = min((long)p.length, low + p.part);
    __global E *entries = (__global E *)((__global char *)entry_base + entry_offset) + row * p.length;
    __global E *spare = (__global E *)((__global char *)spare_base + spare_offset) + row * p.length;
    __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset) + row * p.length;
    for (long k = low; k < high; k += 16) sort16(entries, in, k, min(16L, high - k));
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
    if (from != entries)
      for (long k = low; k < high; ++k) entries[k] = from[k];
  }
}

GROUP __kernel void merge(__global void *to_base, ulong to_offset, __global const void *from_base, ulong from_offset,
                          const SortParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / p.parts, at = (i - row * p.parts) * p.part, stop = min((long)p.length, at + p.part);
    __global E *to = (__global E *)((__global char *)to_base + to_offset) + row * p.length;
    __global const E *from = (__global const E *)((__global const char *)from_base + from_offset) + row * p.length;
    const long first = at / (2 * p.run) * (2 * p.run);
    const long middle = min((long)p.length, first + p.run), end = min((long)p.length, first + 2 * p.run);
    // How many of the left run come before `at`.
    const long before = at - first;
    long low = max(0L, before - (end - middle)), high = min(before, middle - first);
    while (low < high) {
      const long k = (low + high) / 2;
      if (LESS(from[first + k], from[middle + before - 1 - k])) low = k + 1;
      else high = k;
    }
    merge_into(to, from, first + low, middle, middle + before - low, end, at, stop);
  }
}

GROUP __kernel void unpack(__global void *value_base, ulong value_offset, __global void *index_base,
                           ulong index_offset, __global const void *entry_base, ulong entry_offset,
                           __global const void *in_base, ulong in_offset, const SortParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / p.kept, k = i - row * p.kept;
    const long at = POSITION(((__global const E *)((__global const char *)entry_base + entry_offset))[row * p.length + k]);
#if VALUES
    AT(BITS, value_base, value_offset)[i] = AT_CONST(BITS, in_base, in_offset)[row * p.length + at];
#endif
    AT(i64, index_base, index_offset)[i] = at;
  }
}
