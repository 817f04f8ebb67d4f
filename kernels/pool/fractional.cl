// Maxima over windows that begin at random places, in planes and volumes of type A, with their positions. The
// last NaN counts as the maximum. A work-item computes results.
#include "types.h"
#include "range.h"
#include "fractional_params.h"
typedef CTYPE(A) T;

// Every step is rounded as in ATen, because the sum is truncated to an integer.
#if HALF
INLINE T rounded(T v) {
  ushort bits;
  vstore_half_rte(v, 0, (half *)&bits);
  return vload_half(0, (const half *)&bits);
}
#elif BFLOAT
INLINE T rounded(T v) { return as_float((uint)round_bf16(v) << 16); }
#else
#define rounded(v) (v)
#endif

INLINE int start_of(int d, int o, __global const STYPE(A) *samples, const FractionalParams p) {
  if (o == p.out[d] - 1) return p.in[d] - p.window[d];
  const T sample = LOAD(A, samples, p.drawn[d]);
  const T alpha = rounded(rounded((T)(p.in[d] - p.window[d])) / rounded((T)(p.out[d] - 1)));
  const T place = rounded(rounded((T)o) + sample);
  return (int)rounded(place * alpha) - (int)rounded(sample * alpha);
}

GROUP __kernel void forward(__global void *out_base, ulong out_offset, __global void *index_base,
                            ulong index_offset, __global const void *in_base, ulong in_offset,
                            __global const void *sample_base, ulong sample_offset, const FractionalParams p) {
  const long results = (long)p.out[0] * p.out[1] * p.out[2], elements = (long)p.in[0] * p.in[1] * p.in[2];
  FOR_EACH(i, p.pieces, p.per_item) {
    const long plane = i / results;
    __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset) + plane * elements;
    __global const STYPE(A) *samples = AT_CONST(A, sample_base, sample_offset) + plane * p.dims;
    int rest = i - plane * results, start[3];
    for (int d = 2; d >= 0; --d) {
      start[d] = p.out[d] == 1 && p.in[d] == p.window[d] ? 0 : start_of(d, rest % p.out[d], samples, p);
      rest /= p.out[d];
    }
    T best = -INFINITY;
    long at = ((long)start[0] * p.in[1] + start[1]) * p.in[2] + start[2];
    for (int z = start[0]; z < start[0] + p.window[0]; ++z)
      for (int y = start[1]; y < start[1] + p.window[1]; ++y)
        for (int x = start[2]; x < start[2] + p.window[2]; ++x) {
          const long place = ((long)z * p.in[1] + y) * p.in[2] + x;
          const T v = LOAD(A, in, place);
          if (v > best || v != v) {
            best = v;
            at = place;
          }
        }
    STORE(A, AT(A, out_base, out_offset), i, best);
    AT(i64, index_base, index_offset)[i] = at;
  }
}
