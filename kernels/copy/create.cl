// Tensors whose elements follow from their positions: arange, linspace, eye. OUT is the element type; a
// work-item makes one element, or one row of a matrix.
#include "types.h"

#ifdef cl_khr_fp64
typedef double wide;
#else
typedef float wide;
#endif

// out[i] = start + i * step; integers exactly, floats in the widest type the device has.
__kernel void arange(__global void *out_base, ulong out_offset, long stride, long n, long start, long step,
                     ulong start_bits, ulong step_bits) {
  const long i = get_global_id(0);
  if (i >= n) return;
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
#if FLOATING
#ifdef cl_khr_fp64
  const wide v = as_double(start_bits) + i * as_double(step_bits);
#else
  const wide v = as_float((uint)start_bits) + i * as_float((uint)step_bits);
#endif
  STORE(OUT, out, i * stride, TO(OUT, v));
#else
  STORE(OUT, out, i * stride, TO(OUT, start + i * step));
#endif
}

// Counts from the nearer end, as ATen does, so that the last element is exactly `end`.
__kernel void linspace(__global void *out_base, ulong out_offset, long stride, long n, ulong start_bits,
                       ulong end_bits) {
  const long i = get_global_id(0);
  if (i >= n) return;
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
#ifdef cl_khr_fp64
  const wide start = as_double(start_bits), end = as_double(end_bits);
#else
  const wide start = as_float((uint)start_bits), end = as_float((uint)end_bits);
#endif
  const wide step = n > 1 ? (end - start) / (n - 1) : 0;
  const wide v = i < n / 2 ? start + i * step : end - (n - 1 - i) * step;
  STORE(OUT, out, i * stride, TO(OUT, n == 1 ? start : v));
}

__kernel void eye(__global void *out_base, ulong out_offset, long rows, long columns, long row_stride,
                  long column_stride) {
  const long r = get_global_id(0);
  if (r >= rows) return;
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + r * row_stride;
  for (long c = 0; c < columns; ++c) STORE(OUT, out, c * column_stride, TO(OUT, (int)(r == c)));
}
