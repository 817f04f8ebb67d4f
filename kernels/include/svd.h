// What the kernels of one-sided Jacobi rotations and their parts share. TYPE, PART
#ifndef OCLTENSOR_SVD_H
#define OCLTENSOR_SVD_H
#include "linalg.h"
#define SWEEPS 30  // kSweeps of ops/linalg/svd.cpp

#define EXPONENT_f32 126
#define EXPONENT_f64 1022
#define EXPONENT CAT(EXPONENT_, REAL)

// The power of two that brings a matrix's largest |element| to between 1 and 2; NaN if that is not finite.
INLINE R scale_of(R largest) {
  if (!isfinite(largest)) return NAN;
  return largest == 0 ? (R)1 : ldexp((R)1, clamp(ilogb(largest), -EXPONENT, EXPONENT));
}

// The place of number i in ascending or descending order; equal numbers keep their order. NaN is the largest.
INLINE int place_of(__global const R *numbers, long count, long i, bool ascending) {
  int place = 0;
  const R own = numbers[i];
  for (long j = 0; j < count; ++j) {
    const R other = numbers[j];
    const bool equal = other == own || (isnan(other) && isnan(own));
    const bool before = ascending ? other < own || isnan(own) : other > own || isnan(other);
    place += equal ? j < i : before;
  }
  return place;
}

// Rows whose cosine is below this count as orthogonal: rounding errors can be as large.
INLINE R limit_of(long columns) { return CAT(EPSILON_, REAL) * (4 + sqrt((R)columns) / 2); }
// Rows also count as orthogonal if the shorter one's component along the other is at most this: the matrix's
// largest element is 1 or more, so that this is below its rounding errors. Without that limit, rows of a
// matrix of low rank that consist of rounding errors would be rotated again and again.
#define NEGLIGIBLE (CAT(EPSILON_, REAL) / 16)

typedef struct {
  R sine, half_tangent;  // of the angle, and of half of it
  bool needed;
} Rotation;

// The rotation x' = c x - s y, y' = s x + c y that makes rows of the squared lengths xx and yy and the
// product xy, a real number, orthogonal. With h = s / (1 + c) it is x' = x - s (y + h x),
// y' = y + s (x - h y), whose roundings have no bias where c is near 1.
INLINE Rotation rotation(R xx, R yy, R xy, R limit) {
  Rotation r;
  r.sine = r.half_tangent = 0;
  r.needed = fabs(xy) > limit * sqrt(xx) * sqrt(yy) && fabs(xy) > NEGLIGIBLE * sqrt(fmax(xx, yy));
  if (r.needed) {
    const R z = (yy - xx) / (2 * xy);  // at most 8 / eps times the longer row: its square is finite
    const R tangent = copysign(1 / (fabs(z) + sqrt(1 + z * z)), z), cosine = rsqrt(1 + tangent * tangent);
    r.sine = tangent * cosine;
    r.half_tangent = r.sine / (1 + cosine);
  }
  return r;
}

// Pairs of blocks are made in rounds as in a round-robin tournament: the last block stays, the others rotate.
// In the first round the rows within each block are paired as well.
typedef struct {
  long first, second;
} Pair;
INLINE Pair pair_of_blocks(const LinalgParams p, long k) {
  const long moving = p.blocks - 1;
  const long x = k == 0 ? moving : (p.round + k) % moving, y = (p.round + moving - k) % moving;
  Pair pair;
  pair.first = min(x, y);
  pair.second = max(x, y);
  return pair;
}
INLINE long row_of(const LinalgParams p, const Pair pair, long i) {
  return i < p.block_rows ? pair.first * p.block_rows + i : (pair.second - 1) * p.block_rows + i;
}
#endif
