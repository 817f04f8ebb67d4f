// tril and triu. OUT is the integer type of the elements' width, because elements are only moved.
#include "types.h"

// For contiguous row-major matrices: keeps elements with column - row <= diagonal (UPPER: >=), zeroes the
// rest.
__kernel void triangle(__global void *out_base, ulong out_offset, __global const void *in_base,
                       ulong in_offset, long total_rows, long rows, long columns, long diagonal) {
  const long row = get_global_id(0);
  if (row >= total_rows) return;
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + row * columns;
  __global const STYPE(OUT) *in = AT_CONST(OUT, in_base, in_offset) + row * columns;
  const long at = row % rows + diagonal;
  for (long c = 0; c < columns; ++c) {
#if UPPER
    const bool keep = c >= at;
#else
    const bool keep = c <= at;
#endif
    out[c] = keep ? in[c] : (STYPE(OUT))0;
  }
}
