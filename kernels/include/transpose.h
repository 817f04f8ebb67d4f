// Transposes of float16 vectors in registers, for kernels of CPU drivers.
#ifndef OCLTENSOR_TRANSPOSE_H
#define OCLTENSOR_TRANSPOSE_H
#include "types.h"

#define INTERLEAVE_LOW(a, b)                                                                            \
  (float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7)
#define INTERLEAVE_HIGH(a, b)                                                                           \
  (float16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf)

// 16 x 16 transposed by four rounds of interleaving.
INLINE void transpose16(float16 *r) {
  float16 t[16];
  UNROLL for (int round = 0; round < 4; ++round) {
    UNROLL for (int i = 0; i < 8; ++i) {
      const float16 a = r[i], b = r[i + 8];
      t[2 * i] = INTERLEAVE_LOW(a, b);
      t[2 * i + 1] = INTERLEAVE_HIGH(a, b);
    }
    UNROLL for (int i = 0; i < 16; ++i) r[i] = t[i];
  }
}

// 8 x 16 to 16 x 8, two result rows a vector.
INLINE void transpose8(float16 *r) {
  float16 t[8];
  UNROLL for (int round = 0; round < 3; ++round) {
    UNROLL for (int i = 0; i < 4; ++i) {
      const float16 a = r[i], b = r[i + 4];
      t[2 * i] = INTERLEAVE_LOW(a, b);
      t[2 * i + 1] = INTERLEAVE_HIGH(a, b);
    }
    UNROLL for (int i = 0; i < 8; ++i) r[i] = t[i];
  }
}
#endif
