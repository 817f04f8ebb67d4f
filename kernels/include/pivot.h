// What sums of a row are taken relative to, so that a mean far from 0 costs no digits: the median of three
// elements, of which one may be an outlier, or 0 where they are not finite. Equal elements are at a distance
// of exactly 0. T: what is computed in.
#ifndef OCLTENSOR_PIVOT_H
#define OCLTENSOR_PIVOT_H
INLINE T median_pivot(T a, T b, T c) {
  const T median = fmax(fmin(a, b), fmin(fmax(a, b), c));
  return fabs(median) < (T)INFINITY ? median : (T)0;
}
// Of the n elements from `from` on in x.
#define PIVOT(X, x, from, n) \
  median_pivot(LOAD(X, x, from), LOAD(X, x, (from) + (n) / 2), LOAD(X, x, (from) + (n) - 1))
#endif
