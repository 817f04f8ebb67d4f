// The source positions of upsampled elements, for upsample_cpu.cl and upsample.cl. A is the element type,
// FLOATING whether it is a floating-point type; LINEAR, CORNERS: the mode.
#ifndef OCLTENSOR_UPSAMPLE_SOURCE_H
#define OCLTENSOR_UPSAMPLE_SOURCE_H
#include "types.h"
#include "upsample_params.h"

#ifdef cl_khr_fp64
typedef double REAL;
#define REAL_BITS(u) as_double(u)
#else
typedef float REAL;
#define REAL_BITS(u) as_float((uint)(u))
#endif
#if FLOATING
typedef CTYPE(A) T;
#define RESULT(v) (v)
#else
typedef REAL T;
#define RESULT(v) TO(A, rint(v))
#endif

// Output position = low * (1 - weight) + high * weight.
typedef struct {
  int low, high;
  T weight;
} Source;

INLINE Source source(const UpsampleParams p, int d, int o) {
  Source s;
#if LINEAR
  const REAL step = REAL_BITS(p.step[d]);
#if CORNERS
  const REAL wanted = step * o;
#else
  const REAL wanted = max((REAL)0, step * (o + (REAL)0.5) - (REAL)0.5);
#endif
  const REAL at = p.in[d] == p.out[d] ? (REAL)o : wanted;
  s.low = min((int)at, p.in[d] - 1);
  s.high = p.in[d] == p.out[d] ? s.low : min(s.low + 1, p.in[d] - 1);
  s.weight = (T)min((REAL)1, max((REAL)0, at - s.low));
#else
  int at = (int)floor((float)o * as_float((uint)p.step[d]));
  if (p.in[d] == p.out[d]) at = o;
  if (p.out[d] == 2 * p.in[d]) at = o / 2;
  s.low = s.high = min(at, p.in[d] - 1);
  s.weight = 0;
#endif
  return s;
}

// The first output whose source position is i or later: sources rise with the output position.
INLINE int first_from(const UpsampleParams p, int d, int i) {
  int o = clamp((int)((long)i * p.out[d] / p.in[d]), 0, p.out[d]);
  while (o > 0 && source(p, d, o - 1).low >= i) --o;
  while (o < p.out[d] && source(p, d, o).low < i) ++o;
  return o;
}
INLINE int first_reader(const UpsampleParams p, int d, int i) {
  return first_from(p, d, LINEAR ? max(i - 1, 0) : i);
}
INLINE int end_reader(const UpsampleParams p, int d, int i) { return first_from(p, d, i + 1); }
#if LINEAR
INLINE T share(Source s, int i) {
  return (s.low == i ? 1 - s.weight : (T)0) + (s.high == i ? s.weight : (T)0);
}
#else
INLINE T share(Source s, int i) { return 1; }
#endif
#endif
