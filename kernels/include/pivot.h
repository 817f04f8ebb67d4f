// The value that is subtracted from a row's elements before they are summed, so that a mean far from 0 loses
// no digits: the median of three elements, of which one may be an outlier; 0 if they are not finite. For
// equal elements the differences are exactly 0. T: the type to compute in.
#ifndef OCLTENSOR_PIVOT_H
#define OCLTENSOR_PIVOT_H
INLINE T median_pivot(T a, T b, T c) {
  const T median = fmax(fmin(a, b), fmin(fmax(a, b), c));
  return fabs(median) < (T)INFINITY ? median : (T)0;
}
// The pivot of the n elements from `from` on in x.
#define PIVOT(X, x, from, n) \
  median_pivot(LOAD(X, x, from), LOAD(X, x, (from) + (n) / 2), LOAD(X, x, (from) + (n) - 1))
#endif
