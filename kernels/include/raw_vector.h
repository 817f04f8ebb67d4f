// VEC contiguous elements by one load, at multiples of VEC: 16 bytes of float32 or 16-bit types, as many of 8
// bits; or one element of any type. A vector keeps its form in memory until it is unpacked, so that several
// loads in flight take few registers. Needs accumulator.h. Defines: TYPE (of sums); VEC (1, or 16 bytes of
// TYPE).
#ifndef OCLTENSOR_RAW_VECTOR_H
#define OCLTENSOR_RAW_VECTOR_H
#include "accumulator.h"
#if VEC == 1
#define RAW_VECTOR(A) CTYPE(A)
#define LOAD_RAW(A, p, i) LOAD(A, p, i)
#define UNPACK_RAW(A, raw, v) (v)[0] = ACC(raw)
#else
#define RAW_VECTOR(A) CAT(raw_, A)
#define LOAD_RAW(A, p, i) (*(__global const RAW_VECTOR(A) *)((p) + (i)))
#define UNPACK_RAW(A, raw, v) CAT(unpack_, A)(raw, v)
typedef uint4 raw_f32, raw_f16, raw_bf16;
INLINE void unpack_f32(uint4 raw, float *v) { vstore4(as_float4(raw), 0, v); }
INLINE void unpack_f16(uint4 raw, float *v) { vstore8(vload_half8(0, (const half *)&raw), 0, v); }
INLINE void unpack_bf16(uint4 raw, float *v) {
  const uint4 low = raw << 16, high = raw & 0xffff0000u;
  vstore8(as_float8((uint8)(low.x, high.x, low.y, high.y, low.z, high.z, low.w, high.w)), 0, v);
}
#if VEC == 8
typedef uint2 raw_i8;
INLINE void unpack_i8(uint2 raw, float *v) { vstore8(convert_float8(as_char8(raw)), 0, v); }
#else
typedef uint raw_i8;
INLINE void unpack_i8(uint raw, float *v) { vstore4(convert_float4(as_char4(raw)), 0, v); }
#endif
#endif
#endif
