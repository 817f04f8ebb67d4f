// Tables for FFTs of `length` points: roots of unity in two parts (fft_root of fft.h), and the chirp of
// Bluestein's algorithm. PART
#include "complex.h"
#include "fft_params.h"
#include "range.h"

#ifdef cl_khr_fp64
typedef double angle_type;
#else
typedef float angle_type;
#endif

// exp(-2 pi i m / n) for 0 <= m < n. The quadrant is subtracted in integers, so that the remaining angle
// is small and its cosine and sine are accurate to the last digits of creal.
INLINE cplx root(ulong m, ulong n) {
  const int quadrant = (int)(4 * m / n);
  const angle_type turn = (angle_type)(4 * m - quadrant * n) / ((angle_type)2 * n);
  const cplx w = Z((creal)cospi(turn), -(creal)sinpi(turn));
  return quadrant == 0 ? w : quadrant == 1 ? Z(w.y, -w.x) : quadrant == 2 ? -w : Z(-w.y, w.x);
}

GROUP __kernel void fft_roots(__global void *table_base, ulong table_offset, const FftParams p) {
  __global cplx *table = AT_CPLX(table_base, table_offset);
  const long low = 1L << p.low_bits;
  FOR_EACH(i, p.count, p.per_item) table[i] = root(i < low ? i : ((i - low) << p.low_bits), p.length);
}

// The chirp c[i] = exp(-+ pi i^2 / length), and its conjugate, placed around index 0 of a circular array of
// out_length points that is 0 elsewhere.
GROUP __kernel void fft_chirp(__global void *chirp_base, ulong chirp_offset, __global void *circle_base,
                              ulong circle_offset, const FftParams p) {
  __global cplx *chirp = AT_CPLX(chirp_base, chirp_offset), *circle = AT_CPLX(circle_base, circle_offset);
  FOR_EACH(i, p.count, p.per_item) {
    const ulong n = min(i, (long)p.out_length - i);
    if (n >= (ulong)p.length) {
      circle[i] = Z(0, 0);
      continue;
    }
    const cplx w = root(n * n % (2 * (ulong)p.length), 2 * (ulong)p.length);
    const cplx c = Z(w.x, p.sign * w.y);
    if (i < p.length) chirp[i] = c;
    circle[i] = cconj(c);
  }
}
