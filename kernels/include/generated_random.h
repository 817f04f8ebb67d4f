// Random numbers of kernels that torch.compile generates, the same for scalars and vectors and on every
// device: element `offset` of a draw has word offset % 4 of Philox's block offset / 4; normal numbers, which
// take two words, have a block each.
#ifndef OCLTENSOR_GENERATED_RANDOM_H
#define OCLTENSOR_GENERATED_RANDOM_H
#include "types.h"
#include "philox.h"

INLINE uint OVERLOADED random_word(ulong seed, uint offset) {
  uint w0, w1, w2, w3;
  philox_block(seed, offset >> 2, 0u, 0u, &w0, &w1, &w2, &w3);
  const uint low = (offset & 1) != 0 ? w1 : w0, high = (offset & 1) != 0 ? w3 : w2;
  return (offset & 2) != 0 ? high : low;
}
INLINE float OVERLOADED uniform_number(ulong seed, uint offset) {
  return (float)(random_word(seed, offset) >> 8) * 0x1p-24f;
}
INLINE float OVERLOADED normal_number(ulong seed, uint offset) {
  uint w0, w1, w2, w3;
  philox_block(seed, offset, 0u, 0u, &w0, &w1, &w2, &w3);
  const float u = (float)((w0 >> 8) + 1) * 0x1p-24f, angle = (float)(w1 >> 8) * 0x1p-24f;
  return sqrt(-2.0f * log(u)) * cos(6.28318531f * angle);
}
INLINE long integer_number(ulong seed, uint offset, long low, long high) {
  uint w0, w1, w2, w3;
  philox_block(seed, offset, 0u, 0u, &w0, &w1, &w2, &w3);
  return low + (long)((((ulong)w0 << 32) | w1) % (ulong)(high - low));
}

#ifdef VECTORS
PHILOX_FUNCTION(uint4)
// Four blocks where the offsets follow each other from a multiple of 4 on, else a block for each lane.
INLINE uint16 OVERLOADED random_word(ulong seed, uint16 offset) {
  const uint16 lanes = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  if ((offset.s0 & 3) == 0 && all(offset == (uint16)(offset.s0) + lanes)) {
    uint4 w0, w1, w2, w3;
    const uint4 block = (uint4)(offset.s0 >> 2) + (uint4)(0, 1, 2, 3);
    philox_block(seed, block, (uint4)(0), (uint4)(0), &w0, &w1, &w2, &w3);
    const uint4 a = (uint4)(w0.x, w1.x, w2.x, w3.x), b = (uint4)(w0.y, w1.y, w2.y, w3.y);
    const uint4 c = (uint4)(w0.z, w1.z, w2.z, w3.z), d = (uint4)(w0.w, w1.w, w2.w, w3.w);
    return (uint16)(a, b, c, d);
  }
  uint16 w0, w1, w2, w3;
  philox_block(seed, offset >> 2, (uint16)(0), (uint16)(0), &w0, &w1, &w2, &w3);
  const int16 odd = (offset & 1) != (uint16)(0), upper = (offset & 2) != (uint16)(0);
  return upper ? (odd ? w3 : w2) : (odd ? w1 : w0);
}
INLINE float16 OVERLOADED uniform_number(ulong seed, uint16 offset) {
  return convert_float16(random_word(seed, offset) >> 8) * (float16)(0x1p-24f);
}
INLINE float16 OVERLOADED normal_number(ulong seed, uint16 offset) {
  uint16 w0, w1, w2, w3;
  philox_block(seed, offset, (uint16)(0), (uint16)(0), &w0, &w1, &w2, &w3);
  const float16 u = convert_float16((w0 >> 8) + 1) * (float16)(0x1p-24f);
  const float16 angle = convert_float16(w1 >> 8) * (float16)(0x1p-24f);
  return sqrt((float16)(-2.0f) * log(u)) * cos((float16)(6.28318531f) * angle);
}
#endif
#endif
