// Units of quantised weights on GPUs, in steps of eight elements, and their values. Defines: those of
// quantised.h; TURNED.
#ifndef OCLTENSOR_QUANTISED_STEPS_H
#define OCLTENSOR_QUANTISED_STEPS_H
#include "quantised.h"

// A unit is taken in steps of two runs, of the halves of one word's bytes where a unit has 16 bytes.
#define STEPS (UNIT / 8)
#define SPAN_STEPS (SPAN / 8)
#define HALVES (LOADS == 1)
#define FIRST_RUN(step) (HALVES ? (step) : 2 * (step))
#define SECOND_RUN(step) (FIRST_RUN(step) + (HALVES ? 4 : 1))

// Where compilers would read all of x that a unit needs at once, and spill (TURNED), steps are a loop, and
// after each of them the words of the unit turn, so that their indices are constant.
#if TURNED
#define EACH_STEP ROLLED
INLINE void turn_words(uint *words, int count) {
  const int places = HALVES ? 1 : 2;
  uint first[2];
  UNROLL for (int i = 0; i < places; ++i) first[i] = words[i];
  UNROLL for (int i = 0; i < count - places; ++i) words[i] = words[i + places];
  UNROLL for (int i = 0; i < places; ++i) words[count - places + i] = first[i];
}
INLINE void turn(Packed *a) {
  turn_words(a->words, 4 * (LOADS - UPPER_LOADS));
#if FIFTH_BITS
  a->fifth >>= 4;
#endif
#if UPPER_LOADS > 0
  turn_words(a->words + 4 * (LOADS - UPPER_LOADS), 4 * UPPER_LOADS);
#endif
}
#else
#define EACH_STEP UNROLL
INLINE void turn(Packed *a) {}
#endif

INLINE float4 value4(Numbers numbers, const Packed *a, int span) {
#if PAIRS || BYTES
  const float4 v = floats_of(numbers) - bias_of(a);
#else
  const float4 v = numbers;
#endif
#if OFFSETS
  return fma(v, (float4)(a->scale[span]), (float4)(a->offset[span]));
#else
  return v * (float4)(a->scale[span]);
#endif
}
#endif
