// The type of sums of products of TYPE, and of other types with it: the compute type for floating types;
// unsigned words for integers, so that they wrap around (WIDE: 64 bits).
#ifndef OCLTENSOR_ACCUMULATOR_H
#define OCLTENSOR_ACCUMULATOR_H
#include "types.h"
#if FLOATING
typedef CTYPE(TYPE) acc_t;
typedef CVEC(TYPE) acc16_t;
#define ACC(v) TO(TYPE, v)
#define ACC16(v) TO16(TYPE, v)
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#elif WIDE
typedef ulong acc_t;
typedef ulong16 acc16_t;
#define ACC(v) convert_ulong(v)
#define ACC16(v) convert_ulong16(v)
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#else
typedef uint acc_t;
typedef uint16 acc16_t;
#define ACC(v) convert_uint(v)
#define ACC16(v) convert_uint16(v)
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif
#endif
