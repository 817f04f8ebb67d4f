// Keys of sorting: unsigned integers of WIDTH bits that order as ATen's elements do (NaN above everything, -0 equal to 0;
// DESCENDING: the other way round), made from the elements' bits, so that no device needs the element's type.
//   WORD       the unsigned integer type of an element's bits
//   ELEMENT    what the bits mean: one of the names below
//   INFINITE   floats: bits of infinity
#ifndef OCLTENSOR_SORT_KEY_H
#define OCLTENSOR_SORT_KEY_H
#include "types.h"

#define TRUTH 0
#define UNSIGNED 1
#define SIGNED 2
#define FLOAT 3

#if WIDTH == 64
typedef ulong Key;
#else
typedef uint Key;
#endif
#define ALL_BITS ((Key)(~(Key)0 >> (8 * sizeof(Key) - WIDTH)))
#define SIGN_BIT ((Key)1 << (WIDTH - 1))

INLINE Key ascending(Key bits) {
#if ELEMENT == TRUTH
  return bits != 0;
#elif ELEMENT == UNSIGNED
  return bits;
#elif ELEMENT == SIGNED
  return bits ^ SIGN_BIT;
#else
  const Key magnitude = bits & (ALL_BITS >> 1);
  const Key key = magnitude == 0 || !(bits & SIGN_BIT) ? magnitude | SIGN_BIT : ~bits & ALL_BITS;
  return magnitude > INFINITE ? ALL_BITS : key;
#endif
}
#if DESCENDING
INLINE Key key_of(Key bits) { return ~ascending(bits) & ALL_BITS; }
#define ASCENDING_OF(key) (~(key) & ALL_BITS)
#else
INLINE Key key_of(Key bits) { return ascending(bits); }
#define ASCENDING_OF(key) (key)
#endif

// Several elements share the keys of zero and NaN: their bits are in memory only.
#if ELEMENT == FLOAT
INLINE bool has_one_element(Key key) { return ASCENDING_OF(key) != SIGN_BIT && ASCENDING_OF(key) != ALL_BITS; }
#else
INLINE bool has_one_element(Key key) { return true; }
#endif
INLINE Key bits_of(Key key) {
  const Key up = ASCENDING_OF(key);
#if ELEMENT == SIGNED
  return up ^ SIGN_BIT;
#elif ELEMENT == FLOAT
  return up & SIGN_BIT ? up ^ SIGN_BIT : ~up & ALL_BITS;
#else
  return up;
#endif
}
#endif
