// Distances between all pairs of rows of type A, and their gradient. NORM: 0 counts the columns that
// differ, 1 and 2 are those norms, 3 is the largest difference, 4 any other power p.
//   forward   a work-item takes a pair
//   backward  a work-item takes an element and adds up its pairs in order
#include "types.h"
#include "range.h"
#include "pdist_params.h"
typedef CTYPE(A) T;

// The number of pairs whose first row is below i.
INLINE long pairs_before(long i, long rows) { return i * (2 * rows - i - 1) / 2; }

#if NORM == 0
#define JOIN(sum, d) sum += (d) != 0
#elif NORM == 1
#define JOIN(sum, d) sum += d
#elif NORM == 2
#define JOIN(sum, d) sum += (d) * (d)
#elif NORM == 3
#define JOIN(sum, d) sum = (d) > sum || (d) != (d) ? (d) : sum
#else
#define JOIN(sum, d) sum += pow(d, power)
#endif
#define LANES 8  // independent partial sums, to hide the latency of additions

GROUP __kernel void forward(__global void *out_base, ulong out_offset, __global const void *self_base,
                            ulong self_offset, const PdistParams p) {
#if NORM == 4
  const T power = FROM_BITS(A, p.p);
#endif
  long i = -1, j = 0;
  FOR_EACH(k, p.pieces, p.per_item) {
    if (i < 0) {
      // The first row is found from the square root of the count, and corrected for rounding errors.
      const float side = p.rows - 0.5f;
      i = clamp((long)(side - sqrt(fmax(side * side - 2.0f * k, 0.0f))), 0L, (long)p.rows - 2);
      while (pairs_before(i, p.rows) > k) --i;
      while (pairs_before(i + 1, p.rows) <= k) ++i;
      j = k - pairs_before(i, p.rows) + i + 1;
    } else if (++j == p.rows) {
      j = ++i + 1;
    }
    __global const STYPE(A) *a = AT_CONST(A, self_base, self_offset) + i * p.columns;
    __global const STYPE(A) *b = AT_CONST(A, self_base, self_offset) + j * p.columns;
    T sums[LANES];
    UNROLL for (int l = 0; l < LANES; ++l) sums[l] = 0;
    long c = 0;
    for (; c + LANES <= p.columns; c += LANES)
      UNROLL for (int l = 0; l < LANES; ++l) JOIN(sums[l], fabs(LOAD(A, a, c + l) - LOAD(A, b, c + l)));
    ROLLED for (; c < p.columns; ++c) JOIN(sums[0], fabs(LOAD(A, a, c) - LOAD(A, b, c)));
    T sum = sums[0];
#if NORM == 3
    UNROLL for (int l = 1; l < LANES; ++l) JOIN(sum, sums[l]);
#else
    UNROLL for (int l = 1; l < LANES; ++l) sum += sums[l];
#endif
#if NORM == 2
    sum = sqrt(sum);
#elif NORM == 4
    sum = pow(sum, 1 / power);
#endif
    STORE(A, AT(A, out_base, out_offset), k, sum);
  }
}

#if NORM > 0
INLINE T slope(T d, T distance, T power) {
  const T sign = d > 0 ? (T)1 : d < 0 ? (T)-1 : d;
#if NORM == 1
  return sign;
#elif NORM == 2
  return distance == 0 ? (T)0 : d / distance;
#elif NORM == 3
  return fabs(d) == distance ? sign : (T)0;
#else
  if (distance == 0 || (power < 1 && d == 0)) return 0;
  return sign * pow(fabs(d) / distance, power - 1);
#endif
}

GROUP __kernel void backward(__global void *out_base, ulong out_offset, __global const void *grad_base,
                             ulong grad_offset, __global const void *self_base, ulong self_offset,
                             __global const void *distance_base, ulong distance_offset, const PdistParams p) {
  __global const STYPE(A) *grad = AT_CONST(A, grad_base, grad_offset);
  __global const STYPE(A) *self = AT_CONST(A, self_base, self_offset);
  __global const STYPE(A) *distance = AT_CONST(A, distance_base, distance_offset);
  const T power = FROM_BITS(A, p.p);
  FOR_EACH(e, p.pieces, p.per_item) {
    const long i = e / p.columns, c = e - i * p.columns;
    const T own = LOAD(A, self, e);
    T sum = 0;
    for (long j = 0; j < p.rows; ++j) {
      if (j == i) continue;
      const long low = min(i, j), high = max(i, j), k = pairs_before(low, p.rows) + high - low - 1;
      sum += LOAD(A, grad, k) * slope(own - LOAD(A, self, j * p.columns + c), LOAD(A, distance, k), power);
    }
    STORE(A, AT(A, out_base, out_offset), e, sum);
  }
}
#endif
