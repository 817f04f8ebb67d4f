// One pass of Stockham's FFT, self-sorting and out of place (C. Van Loan, Computational Frameworks for the
// Fast Fourier Transform, 1992, section 1.7): butterflies of RADIX elements. More defines: fft.h.
#include "fft.h"

// v = its discrete Fourier transform of RADIX points.
#if RADIX == 1
INLINE void butterfly(float2 *v, float sign) {}
#elif RADIX == 2 || RADIX == 4 || RADIX == 8
INLINE void two(float2 *a, float2 *b) {
  const float2 sum = *a + *b;
  *b = *a - *b;
  *a = sum;
}
INLINE float2 quarter(float2 a, float sign) { return Z(sign * a.y, -sign * a.x); }  // times exp(-+ pi i / 2)
INLINE void four(float2 *a, float2 *b, float2 *c, float2 *d, float sign) {
  two(a, c);
  two(b, d);
  *d = quarter(*d, sign);
  two(a, b);
  two(c, d);
  const float2 swap = *b;
  *b = *c;
  *c = swap;
}
INLINE void butterfly(float2 *v, float sign) {
#if RADIX == 2
  two(v, v + 1);
#elif RADIX == 4
  four(v, v + 1, v + 2, v + 3, sign);
#else
  const float half_root = 0.707106781f;
  four(v, v + 2, v + 4, v + 6, sign);
  four(v + 1, v + 3, v + 5, v + 7, sign);
  const float2 b = v[3], d = v[7];
  float2 odd[4] = {v[1], half_root * (b + quarter(b, sign)), quarter(v[5], sign),
                   half_root * (quarter(d, sign) - d)};
  const float2 even[4] = {v[0], v[2], v[4], v[6]};
  UNROLL for (int k = 0; k < 4; ++k) {
    v[k] = even[k] + odd[k];
    v[k + 4] = even[k] - odd[k];
  }
#endif
}
#else  // an odd prime: elements r and RADIX - r have conjugate roots. ROOTS: cosine, sine of 2 pi k / RADIX.
#if RADIX == 3
__constant float2 roots[] = {(float2)(1, 0), (float2)(-0.5f, 0.866025404f), (float2)(-0.5f, -0.866025404f)};
#elif RADIX == 5
__constant float2 roots[] = {(float2)(1, 0), (float2)(0.309016994f, 0.951056516f),
                             (float2)(-0.809016994f, 0.587785252f), (float2)(-0.809016994f, -0.587785252f),
                             (float2)(0.309016994f, -0.951056516f)};
#elif RADIX == 7
__constant float2 roots[] = {(float2)(1, 0),
                             (float2)(0.623489802f, 0.781831482f),
                             (float2)(-0.222520934f, 0.974927912f),
                             (float2)(-0.900968868f, 0.433883739f),
                             (float2)(-0.900968868f, -0.433883739f),
                             (float2)(-0.222520934f, -0.974927912f),
                             (float2)(0.623489802f, -0.781831482f)};
#endif
INLINE void butterfly(float2 *v, float sign) {
  float2 sums[RADIX / 2 + 1], differences[RADIX / 2 + 1];
  float2 all = v[0];
  UNROLL for (int r = 1; r <= RADIX / 2; ++r) {
    sums[r] = v[r] + v[RADIX - r];
    differences[r] = v[r] - v[RADIX - r];
    all += sums[r];
  }
  const float2 first = v[0];
  v[0] = all;
  UNROLL for (int k = 1; k <= RADIX / 2; ++k) {
    float2 even = first, odd = (float2)(0);
    UNROLL for (int r = 1; r <= RADIX / 2; ++r) {
      const float2 w = roots[r * k % RADIX];
      even += w.x * sums[r];
      odd += w.y * differences[r];
    }
    const float2 turned = Z(sign * odd.y, -sign * odd.x);
    v[k] = even + turned;
    v[RADIX - k] = even - turned;
  }
}
#endif

GROUP __kernel void fft_pass(__global const void *in_base, ulong in_offset, __global void *out_base,
                             ulong out_offset, __global const void *table_base, ulong table_offset,
                             const FftParams p) {
  __global const STYPE(IN) *in = AT_CONST(IN, in_base, in_offset);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
  __global const float2 *table = AT_CONST(c64, table_base, table_offset);
  const INDEX stride = p.length / RADIX, inners = p.inner, done = p.done, step = stride / done;
  FOR_EACH(piece, p.count, p.per_item) {
    const INDEX g = piece, rest = g / inners, inner = g - rest * inners, outer = rest / stride,
                j = rest - outer * stride;
    float2 v[RADIX];
    UNROLL for (int r = 0; r < RADIX; ++r) v[r] = fft_load(in, outer, j + r * stride, inner, p);
    const INDEX k = j % done;
    if (k != 0) {
      UNROLL for (int r = 1; r < RADIX; ++r) v[r] = cmul(v[r], fft_root(table, r * k * step, p));
    }
    butterfly(v, p.sign);
    const INDEX first = (j - k) * RADIX + k;
    UNROLL for (int r = 0; r < RADIX; ++r) fft_store(out, outer, first + r * done, inner, v[r], p);
  }
}
