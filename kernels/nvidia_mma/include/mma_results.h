// Results of a tile in memory: numbers of the operands' type, or floats where pieces of a sum (PARTIAL) or
// TF32 are.
#ifndef OCLTENSOR_MMA_RESULTS_H
#define OCLTENSOR_MMA_RESULTS_H
#include "mma.h"

#if PARTIAL || TF32_PARTS
typedef float result_t;
#else
typedef ushort result_t;
#endif

// Two adjacent results of a row.
INLINE void store_pair(__global result_t *to, bool aligned, int left, float x, float y) {
#if PARTIAL || TF32_PARTS
  if (aligned && left > 1) *(__global float2 *)to = (float2)(x, y);
  else {
    if (left > 0) to[0] = x;
    if (left > 1) to[1] = y;
  }
#else
  const uint pair = pair_from(x, y);
  if (aligned && left > 1) *(__global uint *)to = pair;
  else {
    if (left > 0) to[0] = (ushort)pair;
    if (left > 1) to[1] = (ushort)(pair >> 16);
  }
#endif
}
#endif
