// The values of rows of a quantised weight, from row `first` on, for GPUs: a work-item takes a step of a
// unit, eight elements, so that neighbours store what are neighbours in memory. Rows are of whole units, and
// begin at multiples of 16 bytes in the result. Defines: those of quantised.h; TYPE; GROUP_SIZE; VEC
// (elements that are stored at once, 16 bytes at most).
#define TURNED 1
#include "quantised_steps.h"
#include "element_vectors.h"

// The words, the scale and the offset of the item's step come first: its number is no index.
INLINE void turn_to(Packed *a, int step) {
  UNROLL for (int places = 1; places < STEPS; places *= 2)
    if (step & places) UNROLL for (int i = 0; i < places; ++i) turn(a);
  UNROLL for (int span = 1; span < SPANS; ++span)
    if (step / SPAN_STEPS == span) {
      a->scale[0] = a->scale[span];
      a->offset[0] = a->offset[span];
    }
}

INLINE void store_step(__global STYPE(TYPE) *unit, int step, float4 first, float4 second) {
  float lane[8];
#if HALVES && !ALTERNATING  // four elements of each half of the unit
  vstore4(first, 0, lane);
  vstore4(second, 1, lane);
  UNROLL for (int i = 0; i < 4; i += VEC) {
    STOREV(TYPE, unit, 4 * step + i, lane + i);
    STOREV(TYPE, unit, UNIT / 2 + 4 * step + i, lane + 4 + i);
  }
#else
#if ALTERNATING
  vstore8((float8)(first.x, second.x, first.y, second.y, first.z, second.z, first.w, second.w), 0, lane);
#else
  vstore8((float8)(first, second), 0, lane);
#endif
  UNROLL for (int i = 0; i < 8; i += VEC) STOREV(TYPE, unit, 8 * step + i, lane + i);
#endif
}

__attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))
__kernel void unpack(__global void *out_base, ulong out_offset, __global const void *weight_base,
                     ulong weight_offset, __global const void *scale_base, ulong scale_offset,
                     __global const void *zero_base, ulong zero_offset, const QuantisedParams p) {
  Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  SHARE_CODES(w)
  const long i = get_global_id(0);
  if (i >= p.pieces) return;
  const uint unit = (uint)(i / STEPS), units = (uint)(p.k / UNIT), line = unit / units;
  const int step = (int)(i % STEPS), k = (int)(unit - line * units) * UNIT;
  const int run = step / SPAN_STEPS * SPAN_STEPS;
  Packed a;
  LOAD_PACKED(w, p.first + line, k, &a);
  turn_to(&a, step);
  const float4 first = value4(NUMBERS(w, &a, FIRST_RUN(run)), &a, 0);
  const float4 second = value4(NUMBERS(w, &a, SECOND_RUN(run)), &a, 0);
  store_step(AT(TYPE, out_base, out_offset) + line * p.k + k, step, first, second);
}
