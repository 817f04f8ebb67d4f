// Padding by reflection (REFLECTS) and replication. A work-item takes elements of the result, or chunks of
// its rows (CPU_STYLE). Other defines: pad.h.
#include "pad.h"

// Which element stands at a place of the padded tensor.
INLINE place source(const PadParams p, int d, place at) {
  const place i = at - (place)p.before[d], last = (place)p.sizes[d] - 1;
#if REFLECTS
  return i < 0 ? -i : i > last ? 2 * last - i : i;
#else
  return clamp(i, (place)0, last);
#endif
}

GROUP __kernel void pad(__global void *out_base, ulong out_offset, __global const void *in_base,
                        ulong in_offset, const PadParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    place at[RANK];
    split(p, i, at);
    __global STYPE(M) *out = AT(M, out_base, out_offset);
    __global const STYPE(M) *in = AT_CONST(M, in_base, in_offset);
    UNROLL for (int d = 1; d < RANK; ++d) {
      out += at[d] * p.to[d];
      in += source(p, d, at[d]) * p.from[d];
    }
#if CPU_STYLE
    const long first = at[0] * p.chunk, end = min(first + (long)p.chunk, (long)p.padded[0]);
    const long low = clamp((long)p.begin[0], first, end), high = clamp((long)p.end[0], low, end);
    for (long x = first; x < low; ++x) out[x * TO_STEP] = in[source(p, 0, x) * FROM_STEP];
    move_row(p, out, in, p.before[0], low, high);
    for (long x = high; x < end; ++x) out[x * TO_STEP] = in[source(p, 0, x) * FROM_STEP];
#else
    out[at[0] * TO_STEP] = in[source(p, 0, at[0]) * FROM_STEP];
#endif
  }
}
