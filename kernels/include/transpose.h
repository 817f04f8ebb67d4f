// Transposes of float16 vectors in registers, for kernels of CPU drivers.
#ifndef OCLTENSOR_TRANSPOSE_H
#define OCLTENSOR_TRANSPOSE_H
#include "types.h"

#define INTERLEAVE_LOW(a, b)                                                                            \
  (float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7)
#define INTERLEAVE_HIGH(a, b)                                                                           \
  (float16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf)

// Interleaves within each quarter of a vector, which is one instruction; crossing quarters needs an index
// vector. The literals list single elements: from parts of vectors compilers make several shuffles.
#define UNPACK_LOW(a, b)                                                                                \
  (float16)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5, a.s8, b.s8, a.s9, b.s9, a.sc, b.sc, a.sd, b.sd)
#define UNPACK_HIGH(a, b)                                                                               \
  (float16)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7, a.sa, b.sa, a.sb, b.sb, a.se, b.se, a.sf, b.sf)
// The same with pairs of elements, as ulong.
#define UNPACK_LOW_PAIRS(a, b) (ulong8)(a.s0, b.s0, a.s2, b.s2, a.s4, b.s4, a.s6, b.s6)
#define UNPACK_HIGH_PAIRS(a, b) (ulong8)(a.s1, b.s1, a.s3, b.s3, a.s5, b.s5, a.s7, b.s7)
#define EVEN_QUARTERS(a, b) (ulong8)(a.s0, a.s1, a.s4, a.s5, b.s0, b.s1, b.s4, b.s5)
#define ODD_QUARTERS(a, b) (ulong8)(a.s2, a.s3, a.s6, a.s7, b.s2, b.s3, b.s6, b.s7)

// Transposes 16 x 16: 4 x 4 blocks within the quarters, then the quarters among the vectors.
INLINE void transpose16(float16 *r) {
  ulong8 t[16];
  UNROLL for (int i = 0; i < 16; i += 4) {
    const ulong8 a = as_ulong8(UNPACK_LOW(r[i], r[i + 1])), b = as_ulong8(UNPACK_HIGH(r[i], r[i + 1]));
    const ulong8 c = as_ulong8(UNPACK_LOW(r[i + 2], r[i + 3])),
                 d = as_ulong8(UNPACK_HIGH(r[i + 2], r[i + 3]));
    t[i] = UNPACK_LOW_PAIRS(a, c);
    t[i + 1] = UNPACK_HIGH_PAIRS(a, c);
    t[i + 2] = UNPACK_LOW_PAIRS(b, d);
    t[i + 3] = UNPACK_HIGH_PAIRS(b, d);
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    const ulong8 a = EVEN_QUARTERS(t[i], t[i + 4]), b = ODD_QUARTERS(t[i], t[i + 4]);
    const ulong8 c = EVEN_QUARTERS(t[i + 8], t[i + 12]), d = ODD_QUARTERS(t[i + 8], t[i + 12]);
    r[i] = as_float16(EVEN_QUARTERS(a, c));
    r[i + 8] = as_float16(ODD_QUARTERS(a, c));
    r[i + 4] = as_float16(EVEN_QUARTERS(b, d));
    r[i + 12] = as_float16(ODD_QUARTERS(b, d));
  }
}

// Transposes 8 x 16 to 16 x 8, with two rows of the result per vector.
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
