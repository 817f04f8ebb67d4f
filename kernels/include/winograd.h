// The one-dimensional transforms of Winograd's F(4, 3) and F(3, 4): six products make four sums of three
// terms, or three sums of four. Formulas: Lavin and Gray, arXiv 1509.09308. The points are 0, infinity,
// +-sqrt(2) and +-1/sqrt(2), which are each other's reciprocals, so that no transform has large numbers (Alam
// et al., Winograd Convolution for Deep Neural Networks: Efficient Point Selection). The six inputs of both
// are transformed alike: their transform depends on the points alone.
// Define NUMBER before: float, or a vector of it.
#ifndef OCLTENSOR_WINOGRAD_H
#define OCLTENSOR_WINOGRAD_H
#include "types.h"

#define POINT_A 1.41421356f  // a point, and its reciprocal
#define POINT_B 0.70710678f

// Of the shorter operand: products of the points' powers, divided by the product of a point's distances from
// the others. Three terms: a row or column of a window; four: of a tile of an output's gradient.
INLINE void transform_three(NUMBER u[6], NUMBER a, NUMBER b, NUMBER c) {
  const NUMBER even = fma(c, (NUMBER)(2.0f), a) * (1.0f / 6), odd = b * (POINT_A / 6);
  const NUMBER low = fma(c, (NUMBER)(0.5f), a) * (-2.0f / 3), slope = b * (-2.0f / 3 * POINT_B);
  u[0] = a;
  u[1] = even + odd;
  u[2] = even - odd;
  u[3] = low + slope;
  u[4] = low - slope;
  u[5] = c;
}
INLINE void transform_four(NUMBER u[6], NUMBER a, NUMBER b, NUMBER c, NUMBER d) {
  const NUMBER even = fma(c, (NUMBER)(2.0f), a) * (1.0f / 6);
  const NUMBER odd = fma(d, (NUMBER)(2.0f), b) * (POINT_A / 6);
  const NUMBER low = fma(c, (NUMBER)(0.5f), a) * (-2.0f / 3);
  const NUMBER slope = fma(d, (NUMBER)(0.5f), b) * (-2.0f / 3 * POINT_B);
  u[0] = a;
  u[1] = even + odd;
  u[2] = even - odd;
  u[3] = low + slope;
  u[4] = low - slope;
  u[5] = d;
}

// Of the six inputs.
INLINE void transform_six(NUMBER v[6], NUMBER a, NUMBER b, NUMBER c, NUMBER d, NUMBER e, NUMBER f) {
  const NUMBER p = fma(c, (NUMBER)(-0.5f), e), q = fma(b, (NUMBER)(-0.5f), d);
  const NUMBER r = fma(c, (NUMBER)(-2.0f), e), s = fma(b, (NUMBER)(-2.0f), d);
  v[0] = fma(c, (NUMBER)(-2.5f), a + e);
  v[1] = fma(q, (NUMBER)(POINT_A), p);
  v[2] = fma(q, (NUMBER)(-POINT_A), p);
  v[3] = fma(s, (NUMBER)(POINT_B), r);
  v[4] = fma(s, (NUMBER)(-POINT_B), r);
  v[5] = fma(d, (NUMBER)(-2.5f), b + f);
}

// Of six products, to four or three sums.
INLINE void sums_of_four(NUMBER y[4], NUMBER a, NUMBER b, NUMBER c, NUMBER d, NUMBER e, NUMBER f) {
  const NUMBER p = b + c, q = b - c, r = d + e, s = d - e;
  y[0] = a + p + r;
  y[1] = fma(q, (NUMBER)(POINT_A), s * POINT_B);
  y[2] = fma(p, (NUMBER)(2.0f), r * 0.5f);
  y[3] = fma(q, (NUMBER)(2 * POINT_A), fma(s, (NUMBER)(0.5f * POINT_B), f));
}
INLINE void sums_of_three(NUMBER y[3], NUMBER a, NUMBER b, NUMBER c, NUMBER d, NUMBER e, NUMBER f) {
  const NUMBER p = b + c, q = b - c, r = d + e, s = d - e;
  y[0] = a + p + r;
  y[1] = fma(q, (NUMBER)(POINT_A), s * POINT_B);
  y[2] = fma(p, (NUMBER)(2.0f), fma(r, (NUMBER)(0.5f), f));
}
#endif
