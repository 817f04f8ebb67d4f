// Packing of weights for the direct convolution of CPU drivers. Needs TYPE, and PACKED, the
// address space that the weights are packed into.
#ifndef OCLTENSOR_CONV_WEIGHTS_H
#define OCLTENSOR_CONV_WEIGHTS_H
#include "conv_rows_params.h"
#include "row_vectors.h"
#include "transpose.h"

// The weights of one output channel for k = (input channel, tap).
INLINE long weight_at(long k, const ConvRowsParams p) {
  const long taps = p.taps_y * p.taps_x, c = k / taps, tap = k - c * taps, y = tap / p.taps_x;
  return c * p.w_input + y * p.w_y + (tap - y * p.taps_x) * p.w_x;
}

// Packs weights k0 .. k1 - 1 of output channels n0 .. n0 + 31 as [k - k0][32]; channels past the last repeat
// it. w is the group's first weight, `left` the number of elements from there to the end of memory. Runs of
// contiguous elements (p.w_run of them, in rising or falling order) are transposed in registers.
INLINE void pack_weights(PACKED float16 *to, __global const STYPE(TYPE) *w, long left, long n0, long k0,
                         long k1, const ConvRowsParams p) {
  const long last = p.outputs - 1 - n0;
  w += n0 * p.w_output;
  left -= n0 * p.w_output;
  if (p.w_output == 1 && last >= 31) {
    for (long k = k0; k < k1; ++k, to += 2) {
      to[0] = LOAD16(TYPE, w, weight_at(k, p));
      to[1] = LOAD16(TYPE, w, weight_at(k, p) + 16);
    }
    return;
  }
  if (p.w_run == 0) {
    for (long k = k0; k < k1; ++k, to += 2) {
      __global const STYPE(TYPE) *from = w + weight_at(k, p);
      float lane[32];
      ROLLED for (int i = 0; i < 32; ++i) lane[i] = LOAD(TYPE, from, min((long)i, last) * p.w_output);
      to[0] = vload16(0, lane);
      to[1] = vload16(1, lane);
    }
    return;
  }
  __global const STYPE(TYPE) *row[32];
  ROLLED for (int i = 0; i < 32; ++i) row[i] = w + min((long)i, last) * p.w_output;
  for (long k = k0; k < k1;) {
    const int n = min(16L, min(p.w_run - k % p.w_run, k1 - k));
    const long low = weight_at(p.w_falls ? k + n - 1 : k, p);
    const bool inside = low + 16 + max(0L, min(31L, last) * p.w_output) <= left;
    ROLLED for (int v = 0; v < 2; ++v) {
      float16 r[16];
      if (inside) {
        UNROLL for (int i = 0; i < 16; ++i) r[i] = LOAD16(TYPE, row[16 * v + i], low);
      } else {
        ROLLED for (int i = 0; i < 16; ++i) r[i] = load_row_part(row[16 * v + i] + low, 1, n);
      }
      transpose16(r);
      if (n == 16 && !p.w_falls) {
        UNROLL for (int i = 0; i < 16; ++i) to[2 * i + v] = r[i];
      } else {
        ROLLED for (int i = 0; i < n; ++i) to[2 * (p.w_falls ? n - 1 - i : i) + v] = r[i];
      }
    }
    to += 2 * n;
    k += n;
  }
}
#endif
