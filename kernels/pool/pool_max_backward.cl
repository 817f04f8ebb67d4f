// Gradient of the maximum over windows: the gradient of an input element is the sum over the outputs whose
// index it is. `in` is grad_input's extent, `out` grad_output's.
#include "types.h"
#include "range.h"
#include "pool_params.h"
#include "pool_windows.h"

typedef CTYPE(A) T;

// A work-item takes elements. INDEX: the type that counts elements of both, uint if they are below 2^31.
GROUP __kernel void gather(__global void *in_base, ulong in_offset, __global const void *out_base,
                           ulong out_offset, __global const void *index_base, ulong index_offset,
                           const PoolParams p) {
  __global STYPE(A) *in = AT(A, in_base, in_offset);
  __global const STYPE(A) *out = AT_CONST(A, out_base, out_offset);
  __global const long *indices = AT_CONST(i64, index_base, index_offset);
  FOR_EACH(i, p.pieces, p.per_item) {
    const INDEX row = (INDEX)i / (INDEX)p.in[1], plane = row / (INDEX)p.in[0];
    const int x = (int)((INDEX)i - row * p.in[1]), y = (int)(row - plane * p.in[0]), mine = y * p.in[1] + x;
    const int y0 = first_window(y, p.padding[0], (p.kernel_size[0] - 1) * p.dilation[0] + 1, p.stride[0]);
    const int x0 = first_window(x, p.padding[1], (p.kernel_size[1] - 1) * p.dilation[1] + 1, p.stride[1]);
    const int y1 = last_window(y, p.padding[0], p.stride[0], p.out[0]);
    const int x1 = last_window(x, p.padding[1], p.stride[1], p.out[1]);
    const INDEX first = plane * p.out[0] * p.out[1];
    T sum = 0;
    for (int oy = y0; oy <= y1; ++oy)
      for (int ox = x0; ox <= x1; ++ox) {
        const INDEX o = first + (INDEX)oy * p.out[1] + ox;
        if (indices[o] == mine) sum += LOAD(A, out, o);
      }
    STORE(A, in, i, sum);
  }
}

// A work-item takes planes and adds in place: for types that are stored in their compute type.
GROUP __kernel void spread(__global void *in_base, ulong in_offset, __global const void *out_base,
                           ulong out_offset, __global const void *index_base, ulong index_offset,
                           const PoolParams p) {
  const long in_area = (long)p.in[0] * p.in[1], out_area = (long)p.out[0] * p.out[1];
  FOR_EACH(plane, p.pieces, p.per_item) {
    __global STYPE(A) *in = AT(A, in_base, in_offset) + plane * in_area;
    __global const STYPE(A) *out = AT_CONST(A, out_base, out_offset) + plane * out_area;
    __global const long *indices = AT_CONST(i64, index_base, index_offset) + plane * out_area;
    for (long i = 0; i < in_area; ++i) STORE(A, in, i, (T)0);
    for (long o = 0; o < out_area; ++o)
      if (indices[o] >= 0 && indices[o] < in_area)
        STORE(A, in, indices[o], LOAD(A, in, indices[o]) + LOAD(A, out, o));
  }
}
