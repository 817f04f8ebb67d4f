// Arithmetic of NVIDIA's GPUs that OpenCL C has no name for: one PTX instruction each.
#ifndef OCLTENSOR_PTX_H
#define OCLTENSOR_PTX_H

#include "types.h"

INLINE float fast_exp2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
INLINE float fast_log2(float x) {
  float r;
  asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
// The larger of two numbers; of a number and NaN, the number.
INLINE float larger(float a, float b) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

#endif
