// Rows of x as bytes, by blocks of 32 along k: x = scale * byte, scale = max|x| / 127, byte = x * (127 /
// max|x|) rounded to the nearest, to the even one of two. A block with an infinity or NaN has the scale NaN,
// so that who multiplies with it sees a sum that is not finite, and computes it by floats.
#ifndef OCLTENSOR_INT8_X_H
#define OCLTENSOR_INT8_X_H
#include "types.h"

#define X_BLOCK 32
#define MAGNITUDE 0x7fffffffu
#define ENDLESS 0x7f800000u  // magnitudes from here on are not finite

// Of a block whose largest magnitude has these bits: its scale, and what makes bytes of x in two steps, x *
// first * second, as 127 / max|x| may be too large for a float.
typedef struct {
  float scale, first, second;
} ByteScale;
INLINE ByteScale byte_scale(uint magnitude) {
  const float most = as_float(magnitude);
  ByteScale s;
  s.scale = magnitude < ENDLESS ? most * (1.0f / 127) : as_float(MAGNITUDE);
  s.first = most < 0x1p-60f ? 0x1p64f : 1.0f;
  s.second = magnitude == 0 || magnitude >= ENDLESS ? 0.0f : 127.0f / (most * s.first);
  return s;
}
// The last bits of x * second + 1.5 * 2^23 are the rounded number.
#define ROUNDING 0x1.8p23f
#endif
