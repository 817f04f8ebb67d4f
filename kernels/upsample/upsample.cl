// Upsampling of planes of type A, nearest (LINEAR 0) or bilinear (CORNERS: with aligned corners), and its
// gradient, in which each input element is the sum over the outputs that read it. A work-item takes rows
// (CPU_STYLE) or elements of the tensor that it writes.
// INDEX: the type that counts elements, uint if they are below 2^31 (a 64-bit division takes longer than all
// the rest).
#include "types.h"
#include "row_pieces.h"
#include "upsample_source.h"

GROUP __kernel void forward(__global void *target_base, ulong target_offset, __global const void *source_base,
                            ulong source_offset, const UpsampleParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const INDEX row = ROW_OF(i, p.out[1]), plane_of_row = row / (INDEX)p.out[0];
    const Source y = source(p, 0, (int)(row - plane_of_row * p.out[0]));
    __global STYPE(A) *out = AT(A, target_base, target_offset) + (long)row * p.out[1];
    __global const STYPE(A) *plane =
        AT_CONST(A, source_base, source_offset) + (long)plane_of_row * p.in[0] * p.in[1];
    __global const STYPE(A) *low = plane + (long)y.low * p.in[1], *high = plane + (long)y.high * p.in[1];
    FOR_COLUMNS(x, i, p.out[1]) {
      const Source c = source(p, 1, x);
#if LINEAR
      const T above = (T)LOAD(A, low, c.low) * (1 - c.weight) + (T)LOAD(A, low, c.high) * c.weight;
      const T below = (T)LOAD(A, high, c.low) * (1 - c.weight) + (T)LOAD(A, high, c.high) * c.weight;
      STORE(A, out, x, RESULT(above * (1 - y.weight) + below * y.weight));
#else
      STORE(A, out, x, LOAD(A, low, c.low));
#endif
    }
  }
}

GROUP __kernel void backward(__global void *target_base, ulong target_offset,
                             __global const void *source_base, ulong source_offset, const UpsampleParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const INDEX row = ROW_OF(i, p.in[1]), plane_of_row = row / (INDEX)p.in[0];
    const int y = (int)(row - plane_of_row * p.in[0]), y0 = first_reader(p, 0, y), y1 = end_reader(p, 0, y);
    __global STYPE(A) *in = AT(A, target_base, target_offset) + (long)row * p.in[1];
    __global const STYPE(A) *plane =
        AT_CONST(A, source_base, source_offset) + (long)plane_of_row * p.out[0] * p.out[1];
    FOR_COLUMNS(x, i, p.in[1]) {
      const int x0 = first_reader(p, 1, x), x1 = end_reader(p, 1, x);
      T sum = 0;
      for (int oy = y0; oy < y1; ++oy) {
        const T weight = share(source(p, 0, oy), y);
        for (int ox = x0; ox < x1; ++ox) {
#if LINEAR
          sum += weight * share(source(p, 1, ox), x) * (T)LOAD(A, plane, (long)oy * p.out[1] + ox);
#else
          sum += (T)LOAD(A, plane, (long)oy * p.out[1] + ox);
#endif
        }
      }
      STORE(A, in, x, RESULT(sum));
    }
  }
}
