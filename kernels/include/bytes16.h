// 16 bytes of f32, f16 or bf16 as floats, and back, rounded to nearest even: COUNT16(A) numbers by one access of memory.
#ifndef OCLTENSOR_BYTES16_H
#define OCLTENSOR_BYTES16_H
#include "types.h"
#define COUNT16(A) ((int)(16 / sizeof(STYPE(A))))
#define FROM_BYTES(A, bytes, v) CAT(from_bytes_, A)(bytes, v)
#define TO_BYTES(A, v) CAT(to_bytes_, A)(v)

INLINE void from_bytes_f32(uint4 bytes, float *v) { vstore4(as_float4(bytes), 0, v); }
INLINE uint4 to_bytes_f32(const float *v) { return as_uint4(vload4(0, v)); }

INLINE void from_bytes_f16(uint4 bytes, float *v) { vstore8(vload_half8(0, (const half *)&bytes), 0, v); }
INLINE uint4 to_bytes_f16(const float *v) {
  uint4 bytes;
  vstore_half8_rte(vload8(0, v), 0, (half *)&bytes);
  return bytes;
}

INLINE void from_bytes_bf16(uint4 bytes, float *v) {
  const uint4 low = bytes << 16, high = bytes & 0xffff0000u;
  vstore8(as_float8((uint8)(low.x, high.x, low.y, high.y, low.z, high.z, low.w, high.w)), 0, v);
}
INLINE uint4 to_bytes_bf16(const float *v) {
  ushort bits[8];
  UNROLL for (int i = 0; i < 8; ++i) bits[i] = round_bf16(v[i]);
  return as_uint4(vload8(0, bits));
}
#endif
