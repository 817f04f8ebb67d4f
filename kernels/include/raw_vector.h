// VEC contiguous elements by one load: 16 bytes (float32, 16-bit types; at multiples of 16 bytes), or one
// element of any type. A vector keeps its form in memory until it is unpacked, so that several loads in
// flight take few registers. Needs accumulator.h. Defines: TYPE, VEC (1, or 16 bytes of elements).
#ifndef OCLTENSOR_RAW_VECTOR_H
#define OCLTENSOR_RAW_VECTOR_H
#include "accumulator.h"
#if VEC == 1
typedef CTYPE(TYPE) raw_t;
#define LOAD_RAW(p, i) LOAD(TYPE, p, i)
#define RAW_ZERO 0
INLINE void unpack(raw_t raw, acc_t v[VEC]) { v[0] = ACC(raw); }
#else
typedef uint4 raw_t;
#define LOAD_RAW(p, i) (*(__global const uint4 *)((p) + (i)))
#define RAW_ZERO ((uint4)(0))
INLINE void unpack_f32(uint4 raw, float *v) { vstore4(as_float4(raw), 0, v); }
INLINE void unpack_f16(uint4 raw, float *v) { vstore8(vload_half8(0, (const half *)&raw), 0, v); }
INLINE void unpack_bf16(uint4 raw, float *v) {
  const uint4 low = raw << 16, high = raw & 0xffff0000u;
  vstore8(as_float8((uint8)(low.x, high.x, low.y, high.y, low.z, high.z, low.w, high.w)), 0, v);
}
INLINE void unpack(raw_t raw, acc_t v[VEC]) { CAT(unpack_, TYPE)(raw, v); }
#endif
#endif
