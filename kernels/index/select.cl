// nonzero, nonzero_static and masked_select over row-major tensors in chunks: counts the chosen elements of
// each chunk, then writes them after those of the chunks before. M is the mask's type, A an integer of the
// values' width.
#include "types.h"
#include "range.h"
#include "shape_params.h"

GROUP __kernel void count_chosen(__global void *count_base, ulong count_offset,
                                 __global const void *mask_base, ulong mask_offset, long elements, long chunk,
                                 long chunks, long per_item) {
  __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset);
  FOR_EACH(c, chunks, per_item) {
    const long end = min(elements, (c + 1) * chunk);
    int n = 0;
    for (long i = c * chunk; i < end; ++i) n += LOAD(M, mask, i) != 0;
    AT(i32, count_base, count_offset)[c] = n;
  }
}

// out[k] = the coordinates of the k-th of the first `rows` chosen ones; `row` and `column` are the strides
// of k and of the coordinate. Rows that no element is left for are filled. There are `items` items for both.
GROUP __kernel void write_coordinates(__global void *out_base, ulong out_offset,
                                      __global const void *start_base, ulong start_offset,
                                      __global const void *mask_base, ulong mask_offset, long elements,
                                      long chunk, long chunks, long items, long per_item, int rank, long rows,
                                      long fill, long row, long column, const ShapeParams shape) {
  __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset);
  __global const long *starts = AT_CONST(i64, start_base, start_offset);
  __global long *out = AT(i64, out_base, out_offset);
  FOR_EACH(c, items, per_item) {
    const long end = c < chunks ? min(elements, (c + 1) * chunk) : 0;
    long k = c < chunks ? starts[c] : rows;
    for (long i = c * chunk; i < end && k < rows; ++i) {
      if (LOAD(M, mask, i) == 0) continue;
      long rest = i;
      for (int d = rank - 1; d >= 0; --d) {
        const long next = rest / shape.sizes[d];
        out[k * row + d * column] = rest - next * shape.sizes[d];
        rest = next;
      }
      ++k;
    }
    for (k = starts[chunks] + c; k < rows; k += items)
      for (int d = 0; d < rank; ++d) out[k * row + d * column] = fill;
  }
}

GROUP __kernel void write_values(__global void *out_base, ulong out_offset, __global const void *start_base,
                                 ulong start_offset, __global const void *mask_base, ulong mask_offset,
                                 __global const void *in_base, ulong in_offset, long elements, long chunk,
                                 long chunks, long per_item) {
  __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset);
  __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset);
  FOR_EACH(c, chunks, per_item) {
    const long end = min(elements, (c + 1) * chunk);
    __global STYPE(A) *out = AT(A, out_base, out_offset) + AT_CONST(i64, start_base, start_offset)[c];
    for (long i = c * chunk; i < end; ++i)
      if (LOAD(M, mask, i) != 0) *out++ = in[i];
  }
}
