// Both ends of Bluestein's algorithm: the input times the chirp, padded with zeros; the results times the
// chirp. Defines: fft.h.
#include "fft.h"

#define ARGUMENTS                                                                           \
  __global const void *in_base, ulong in_offset, __global void *out_base, ulong out_offset, \
      __global const void *chirp_base, ulong chirp_offset
#define PLACES                                                                \
  __global const STYPE(IN) *in = AT_CONST(IN, in_base, in_offset);            \
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);                   \
  __global const cplx *chirp = AT_CPLX_CONST(chirp_base, chirp_offset);

GROUP __kernel void chirp_before(ARGUMENTS, const FftParams p) {
  PLACES
  FOR_EACH(piece, p.count, p.per_item) {
    const INDEX g = piece, rest = g / p.inner, inner = g - rest * p.inner, outer = rest / p.out_length,
                n = rest - outer * p.out_length;
    const cplx v = n < p.length ? cmul(fft_load(in, outer, n, inner, p), chirp[n]) : Z(0, 0);
    fft_store(out, outer, n, inner, v, p);
  }
}

GROUP __kernel void chirp_after(ARGUMENTS, const FftParams p) {
  PLACES
  FOR_EACH(piece, p.count, p.per_item) {
    const INDEX g = piece, rest = g / p.inner, inner = g - rest * p.inner, outer = rest / p.length,
                n = rest - outer * p.length;
    fft_store(out, outer, n, inner, cmul(fft_load(in, outer, n, inner, p), chirp[n]), p);
  }
}
