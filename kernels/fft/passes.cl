// One pass of Stockham's FFT, self-sorting and out of place (C. Van Loan, Computational Frameworks for the
// Fast Fourier Transform, 1992, section 1.7): butterflies of RADIX elements. More defines: fft.h.
#include "fft.h"

// v = its discrete Fourier transform of RADIX points.
#if RADIX == 1
INLINE void butterfly(cplx *v, creal sign) {}
#elif RADIX == 2 || RADIX == 4 || RADIX == 8
INLINE void two(cplx *a, cplx *b) {
  const cplx sum = *a + *b;
  *b = *a - *b;
  *a = sum;
}
INLINE cplx quarter(cplx a, creal sign) { return Z(sign * a.y, -sign * a.x); }  // times exp(-+ pi i / 2)
INLINE void four(cplx *a, cplx *b, cplx *c, cplx *d, creal sign) {
  two(a, c);
  two(b, d);
  *d = quarter(*d, sign);
  two(a, b);
  two(c, d);
  const cplx swap = *b;
  *b = *c;
  *c = swap;
}
INLINE void butterfly(cplx *v, creal sign) {
#if RADIX == 2
  two(v, v + 1);
#elif RADIX == 4
  four(v, v + 1, v + 2, v + 3, sign);
#else
  const creal half_root = NUM(0.707106781186547524);
  four(v, v + 2, v + 4, v + 6, sign);
  four(v + 1, v + 3, v + 5, v + 7, sign);
  const cplx b = v[3], d = v[7];
  cplx odd[4] = {v[1], half_root * (b + quarter(b, sign)), quarter(v[5], sign),
                   half_root * (quarter(d, sign) - d)};
  const cplx even[4] = {v[0], v[2], v[4], v[6]};
  UNROLL for (int k = 0; k < 4; ++k) {
    v[k] = even[k] + odd[k];
    v[k + 4] = even[k] - odd[k];
  }
#endif
}
#else  // an odd prime: elements r and RADIX - r have conjugate roots. ROOTS: cosine, sine of 2 pi k / RADIX.
// The roots of unity with the angles 2 pi k / RADIX.
#define ROOT(x, y) (cplx)(NUM(x), NUM(y))
#if RADIX == 3
__constant cplx roots[] = {ROOT(1.0, 0.0), ROOT(-0.5, 0.866025403784438647),
                           ROOT(-0.5, -0.866025403784438647)};
#elif RADIX == 5
__constant cplx roots[] = {ROOT(1.0, 0.0), ROOT(0.309016994374947424, 0.951056516295153572),
                           ROOT(-0.809016994374947424, 0.587785252292473129),
                           ROOT(-0.809016994374947424, -0.587785252292473129),
                           ROOT(0.309016994374947424, -0.951056516295153572)};
#elif RADIX == 7
__constant cplx roots[] = {ROOT(1.0, 0.0),
                           ROOT(0.623489801858733531, 0.781831482468029809),
                           ROOT(-0.222520933956314404, 0.974927912181823607),
                           ROOT(-0.900968867902419126, 0.433883739117558120),
                           ROOT(-0.900968867902419126, -0.433883739117558120),
                           ROOT(-0.222520933956314404, -0.974927912181823607),
                           ROOT(0.623489801858733531, -0.781831482468029809)};
#endif
INLINE void butterfly(cplx *v, creal sign) {
  cplx sums[RADIX / 2 + 1], differences[RADIX / 2 + 1];
  cplx all = v[0];
  UNROLL for (int r = 1; r <= RADIX / 2; ++r) {
    sums[r] = v[r] + v[RADIX - r];
    differences[r] = v[r] - v[RADIX - r];
    all += sums[r];
  }
  const cplx first = v[0];
  v[0] = all;
  UNROLL for (int k = 1; k <= RADIX / 2; ++k) {
    cplx even = first, odd = (cplx)(0);
    UNROLL for (int r = 1; r <= RADIX / 2; ++r) {
      const cplx w = roots[r * k % RADIX];
      even += w.x * sums[r];
      odd += w.y * differences[r];
    }
    const cplx turned = Z(sign * odd.y, -sign * odd.x);
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
  __global const cplx *table = AT_CPLX_CONST(table_base, table_offset);
  const INDEX stride = p.length / RADIX, inners = p.inner, done = p.done, step = stride / done;
  FOR_EACH(piece, p.count, p.per_item) {
    const INDEX g = piece, rest = g / inners, inner = g - rest * inners, outer = rest / stride,
                j = rest - outer * stride;
    cplx v[RADIX];
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
