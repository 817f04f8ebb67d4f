// What FFT kernels share. Defines: PART: f32 or f64, the type of computation; IN and OUT: types, complex or
// real; HALF_IN: the input is the first half of a Hermitian spectrum; INDEX: uint where the work has less
// than 2^31 pieces, else ulong.
#ifndef OCLTENSOR_FFT_H
#define OCLTENSOR_FFT_H
#include "complex.h"
#include "fft_params.h"
#include "range.h"

// Loads element n of a transform of [outer, length, inner].
INLINE cplx fft_load(__global const STYPE(IN) *in, long outer, long n, long inner, const FftParams p) {
#if HALF_IN
  const bool mirrored = n >= p.in_length;
  const cplx v = CLOAD(IN, in, (outer * p.in_length + (mirrored ? p.length - n : n)) * p.inner + inner);
  return mirrored ? cconj(v) : v;
#else
  return CLOAD(IN, in, (outer * p.in_length + n) * p.inner + inner);
#endif
}
// Stores element n, of a real output the real part only; elements from out_length on are dropped.
INLINE void fft_store(__global STYPE(OUT) *out, long outer, long n, long inner, cplx v, const FftParams p) {
  if (n >= p.out_length) return;
  CSTORE(OUT, out, (outer * p.out_length + n) * p.inner + inner, v * FROM_BITS(PART, p.scale));
}
// exp(-+ 2 pi i m / length) from two short tables, one for the low bits of m and one for the others.
INLINE cplx fft_root(__global const cplx *table, INDEX m, const FftParams p) {
  const INDEX low = (INDEX)1 << p.low_bits;
  const cplx w = cmul(table[m & (low - 1)], table[low + (m >> p.low_bits)]);
  return Z(w.x, p.sign * w.y);
}
#endif
