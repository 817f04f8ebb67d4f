// Sort keys, for all devices: unsigned integers of WIDTH bits with the order of the elements in ATen (NaN
// above everything, -0 equal to 0; DESCENDING: reversed). They are made from the elements' bits, so that the
// device need not support the element's type.
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

// From elements' bits, keys in ascending order; K is Key or a vector of keys.
#if ELEMENT == TRUTH
#define ASCENDING(K, bits) ((bits) != (K)(0) ? (K)(1) : (K)(0))
#elif ELEMENT == UNSIGNED
#define ASCENDING(K, bits) (bits)
#elif ELEMENT == SIGNED
#define ASCENDING(K, bits) ((bits) ^ (K)(SIGN_BIT))
#else
// Bits above those of -0 are negative numbers; bits above infinity, without the sign, are NaN.
#define IS_NAN(K, bits) (((bits) & (K)(ALL_BITS >> 1)) > (K)(INFINITE))
#define ORDERED(K, bits) ((bits) > (K)(SIGN_BIT) ? ~(bits) & (K)(ALL_BITS) : (bits) | (K)(SIGN_BIT))
#define ASCENDING(K, bits) (IS_NAN(K, bits) ? (K)(ALL_BITS) : ORDERED(K, bits))
#endif
#if DESCENDING
#define KEY_FUNCTION(name, K) INLINE K name(K bits) { return ~ASCENDING(K, bits) & (K)(ALL_BITS); }
#define ASCENDING_OF(key) (~(key) & ALL_BITS)
#else
#define KEY_FUNCTION(name, K) INLINE K name(K bits) { return ASCENDING(K, bits); }
#define ASCENDING_OF(key) (key)
#endif
KEY_FUNCTION(key_of, Key)

// Different elements have the keys of zero and of NaN, so their bits cannot be recovered from the key, but
// must be read from memory.
#if ELEMENT == FLOAT
INLINE bool has_one_element(Key key) {
  return ASCENDING_OF(key) != SIGN_BIT && ASCENDING_OF(key) != ALL_BITS;
}
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

#define AT_BYTES(T, base, offset) ((__global T *)((__global char *)(base) + (offset)))
#endif
