// Where a matrix in Hessenberg form splits into blocks.
#ifndef OCLTENSOR_EIG_DEFLATION_H
#define OCLTENSOR_EIG_DEFLATION_H
#include "matrix_elements.h"

// Whether the element left of row k's diagonal counts as zero, in a block that ends with row `hi`: the
// criterion of Ahues and Tisseur ("A new deflation criterion for the QR algorithm", 1997).
INLINE bool is_negligible(__global const T *a, long n, long k, long hi) {
  const R below = part_sum(a[k * n + k - 1]);
  if (below <= LEAST) return true;
  const R here = part_sum(a[k * n + k]), before = part_sum(a[(k - 1) * n + k - 1]);
  R sizes = here + before;
  if (sizes == 0) {
    if (k > 1) sizes += part_sum(a[(k - 1) * n + k - 2]);
    if (k < hi) sizes += part_sum(a[(k + 1) * n + k]);
  }
  if (below > EPSILON * sizes) return false;
  const R above = part_sum(a[(k - 1) * n + k]);
  const R apart = part_sum(a[(k - 1) * n + k - 1] - a[k * n + k]);
  const R most = fmax(here, apart), least = fmin(here, apart);
  const R more = fmax(below, above), less = fmin(below, above), sum = most + more;
  return less * (more / sum) <= fmax((R)LEAST, EPSILON * (least * (most / sum)));
}
#endif
