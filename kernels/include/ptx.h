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
// Bytes of a (numbers 0 to 3) and b (4 to 7), one for each four bits of `which`, the lowest first; bit 3 of
// the four says that all bits become that byte's sign.
INLINE uint permute_bytes(uint a, uint b, uint which) {
  uint r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(which));
  return r;
}
// (a & b) | c, of which compilers make two instructions where b and c are constants.
INLINE uint and_or(uint a, uint b, uint c) {
  uint r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
// Four matrices of 8 x 8 elements of 16 bits from local memory: the lanes say where their rows are, 8 lanes a
// matrix. A lane receives what it has of sums of products; with `turn` ".trans", of the matrices transposed.
#define LDMATRIX(v, turn, at)                                                             \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" turn ".shared.b16 {%0, %1, %2, %3}, [%4];" \
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at) : "memory");
// Whether it is so for any lane of the warp.
INLINE bool any_lane(bool is) {
  int any;
  asm volatile("{.reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.any.pred p, p, 0xffffffff;"
               " selp.s32 %0, 1, 0, p;}"
               : "=r"(any) : "r"((int)is));
  return any;
}
// The larger of two numbers; of a number and NaN, the number.
INLINE float larger(float a, float b) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

#endif
