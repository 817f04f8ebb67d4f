// Histograms of points of type A over bins between given edges. A bin includes its left edge, the last bin
// both edges.
//   places    out: the number of the bin of each point in `in`, in row-major order of the bins; NOWHERE
//             outside of the edges
//   density   out: sums, divided by the total in `in` (by the first dimensions' launch) and by the sizes of
//             their bins
#include "types.h"
#include "range.h"
#include "histogram_params.h"
typedef CTYPE(A) T;
#define NOWHERE LONG_MAX
#define EDGE(d) AT_CONST(A, edge##d##_base, edge##d##_offset)
#define PAIR(name) __global const void *name##_base, ulong name##_offset

// The bin of x among those of bins + 1 rising edges; -1 if x is outside.
INLINE long bin_of(T x, __global const STYPE(A) *edges, long bins) {
  if (!(x >= LOAD(A, edges, 0) && x <= LOAD(A, edges, bins))) return -1;
  long low = 0, high = bins + 1;  // the first edge above x
  while (low < high) {
    const long middle = (low + high) / 2;
    if (LOAD(A, edges, middle) > x) high = middle;
    else low = middle + 1;
  }
  return clamp(low - 1, 0L, bins - 1);
}

GROUP __kernel void places(__global void *out_base, ulong out_offset, PAIR(in), PAIR(edge0), PAIR(edge1),
                           PAIR(edge2), PAIR(edge3), const HistogramParams p) {
  __global long *keys = AT(i64, out_base, out_offset);
  FOR_EACH(i, p.pieces, p.per_item) {
    __global const STYPE(A) *point = AT_CONST(A, in_base, in_offset) + i * p.dims + p.first;
    long key = p.first == 0 ? 0 : keys[i];
#define FIND(d)                                                     \
  if (p.bins[d] > 0 && key != NOWHERE) {                            \
    const long bin = bin_of(LOAD(A, point, d), EDGE(d), p.bins[d]); \
    key = bin < 0 ? NOWHERE : key * p.bins[d] + bin;                \
  }
    FIND(0) FIND(1) FIND(2) FIND(3)
    keys[i] = key;
  }
}

GROUP __kernel void density(__global void *out_base, ulong out_offset, PAIR(in), PAIR(edge0), PAIR(edge1),
                            PAIR(edge2), PAIR(edge3), const HistogramParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    T value = LOAD(A, AT(A, out_base, out_offset), i);
    if (p.first == 0) value /= LOAD(A, AT_CONST(A, in_base, in_offset), 0);
    long rest = i / p.inner;
#define DIVIDE(d)                                                         \
  if (p.bins[d] > 0) {                                                    \
    const long bin = rest % p.bins[d];                                    \
    value /= LOAD(A, EDGE(d), bin + 1) - LOAD(A, EDGE(d), bin);           \
    rest /= p.bins[d];                                                    \
  }
    DIVIDE(3) DIVIDE(2) DIVIDE(1) DIVIDE(0)
    STORE(A, AT(A, out_base, out_offset), i, value);
  }
}
