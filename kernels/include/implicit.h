// What convolutions as implicit products have in common: tiles of BN columns, numbers as they are in memory,
// and the type of the results. Defines: TYPE, PIECES (1: a group sums a piece of the terms, in float).
#ifndef OCLTENSOR_IMPLICIT_H
#define OCLTENSOR_IMPLICIT_H
#include "types.h"
#define TN 8
#include "register_tile.h"

#define BN 128
#define WX (BN / (LX * TN))
#if PIECES
#define RESULT f32
#else
#define RESULT TYPE
#endif
typedef CAT(raw1_, TYPE) raw;
typedef CAT(raw4_, TYPE) raw4;
#define AT_RAW(base, offset) ((__global const raw *)((__global const char *)(base) + (offset)))
#endif
