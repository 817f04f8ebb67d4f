// Applying normalisation, forward and backward, to one element and to a vector: x, its gradient dy (BACKWARD)
// and the numbers of its plane, parameter k of plane p at table[k * planes + p] (see
// norm/planes_channels.cl).
#include "types.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#ifdef BACKWARD
#define NUMBERS 4
#define FORMULA(x, dy, q) ((dy) * q[1] - q[2] - ((x) - q[0]) * q[3])
#else
#define NUMBERS 3
#define FORMULA(x, dy, q) (((x) - q[0]) * q[1] + q[2])
#define DY X
#endif
#define APPLY_ARGUMENTS                                                                             \
  __global const void *x_base, ulong x_offset, __global const void *dy_base, ulong dy_offset,       \
      __global const void *table_base, ulong table_offset, __global void *out_base, ulong out_offset
