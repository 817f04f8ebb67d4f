// The gradient of padding by reflection (REFLECTS) and replication: each element is the sum over the places
// that it was copied to. A work-item takes elements of the result, or chunks of its rows (CPU_STYLE).
// Defines: A, the elements' type; INNER, PADDED: dimensions [INNER, INNER + PADDED) are padded. Others: pad.h
#include "pad.h"

typedef CTYPE(A) T;

// The first place from `from` on that element i was copied to; p.padded[d] or more: none.
INLINE place reader(const PadParams p, int d, place i, place from) {
  const place before = (place)p.before[d], last = (place)p.sizes[d] - 1, own = before + i;
#if REFLECTS
  const place mirrored_before = before - i, mirrored_after = own + 2 * (last - i);
  if (mirrored_before >= from) return mirrored_before;
  if (own >= from) return own;
  return mirrored_after >= from ? mirrored_after : (place)p.padded[d];
#else
  const place first = max(i == 0 ? 0 : own, from);
  return first < (i == last ? (place)p.padded[d] : own + 1) ? first : (place)p.padded[d];
#endif
}
#define FOR_READERS(q, d) \
  for (place q = reader(p, d, at[d], 0); q < (place)p.padded[d]; q = reader(p, d, at[d], q + 1))
#define READERS_1 FOR_READERS(x, INNER)
#define READERS_2 FOR_READERS(y, INNER + 1) READERS_1
#define READERS_3 FOR_READERS(z, INNER + 2) READERS_2
#define PLACE_1 x * p.from[INNER]
#define PLACE_2 PLACE_1 + y * p.from[INNER + 1]
#define PLACE_3 PLACE_2 + z * p.from[INNER + 2]

// `grad`: that of the element's line through the dimensions that are not padded
INLINE T sum_of_readers(const PadParams p, __global const STYPE(A) *grad, const place *at) {
  T sum = 0;
  CAT(READERS_, PADDED) sum += LOAD(A, grad, CAT(PLACE_, PADDED));
  return sum;
}
#define IS_PADDED(d) ((d) >= INNER && (d) < INNER + PADDED)

INLINE void sum_row(const PadParams p, __global STYPE(A) *out, __global const STYPE(A) *in, place *at,
                    long low, long high) {
  for (long x = low; x < high; ++x) {
    at[0] = (place)x;
    STORE(A, out, x * TO_STEP, sum_of_readers(p, IS_PADDED(0) ? in : in + x * FROM_STEP, at));
  }
}

GROUP __kernel void pad_backward(__global void *out_base, ulong out_offset, __global const void *in_base,
                                 ulong in_offset, const PadParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    place at[RANK];
    split(p, i, at);
    long to = 0, kept = 0;
    UNROLL for (int d = 1; d < RANK; ++d) {
      to += at[d] * p.to[d];
      if (!IS_PADDED(d)) kept += at[d] * p.from[d];
    }
    __global STYPE(A) *out = AT(A, out_base, out_offset) + to;
    __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset) + kept;
#if CPU_STYLE
    const long first = at[0] * p.chunk, end = min(first + (long)p.chunk, (long)p.sizes[0]);
    bool is_alone = true;
    __global const STYPE(M) *single = AT_CONST(M, in_base, in_offset) + kept;
    UNROLL for (int d = 1; d < RANK; ++d) {
      if (!IS_PADDED(d)) continue;
      is_alone = is_alone && at[d] >= p.begin[d] && at[d] < p.end[d];
      single += (at[d] + p.before[d]) * p.from[d];
    }
    const long low = is_alone ? clamp((long)p.begin[0], first, end) : end;
    const long high = is_alone ? clamp((long)p.end[0], low, end) : end;
    sum_row(p, out, in, at, first, low);
    move_row(p, AT(M, out_base, out_offset) + to, single, -p.before[0], low, high);
    sum_row(p, out, in, at, high, end);
#else
    sum_row(p, out, in, at, at[0], at[0] + 1);
#endif
  }
}
