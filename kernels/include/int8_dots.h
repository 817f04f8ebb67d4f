// Four products of bytes at once. Define: INT8_DOTS, by what: DOTS_PLAIN, which is OpenCL C, DOTS_PTX,
// NVIDIA's dp4a (compute capability 6.1 and later), DOTS_KHRONOS, cl_khr_integer_dot_product, DOTS_AMD and
// DOTS_AMD_MIXED, v_dot4_i32_i8 and v_dot4_i32_iu8 (LLVM's list of AMDGPU built-ins).
#ifndef OCLTENSOR_INT8_DOTS_H
#define OCLTENSOR_INT8_DOTS_H
#include "types.h"

#define DOTS_PLAIN 0
#define DOTS_PTX 1
#define DOTS_KHRONOS 2
#define DOTS_AMD 3
#define DOTS_AMD_MIXED 4
#if INT8_DOTS == DOTS_KHRONOS
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
#endif

// sum + the products of the signed bytes of a and b.
INLINE int add_dots(uint a, uint b, int sum) {
#if INT8_DOTS == DOTS_PTX
  int r;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
#elif INT8_DOTS == DOTS_KHRONOS
  return sum + dot_4x8packed_ss_int(a, b);
#elif INT8_DOTS == DOTS_AMD
  return __builtin_amdgcn_sdot4(as_int(a), as_int(b), sum, false);
#elif INT8_DOTS == DOTS_AMD_MIXED
  return __builtin_amdgcn_sudot4(true, as_int(a), true, as_int(b), sum, false);
#else
#define BYTE(word, i) ((int)(char)((word) >> (8 * (i))))
  UNROLL for (int i = 0; i < 4; ++i) sum += BYTE(a, i) * BYTE(b, i);
  return sum;
#endif
}
#endif
