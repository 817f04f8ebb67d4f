// Upsampling of planes of type A, nearest (LINEAR 0) or bilinear (CORNERS: with aligned corners), and its gradient, in
// which every input element adds up the outputs that read it. A work-item takes rows (ROWS) or elements of what it writes.
#include "types.h"
#include "range.h"
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
  s.high = min(s.low + 1, p.in[d] - 1);
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

// The outputs [first, end) that read input position i: sources rise with the output position.
INLINE int first_from(const UpsampleParams p, int d, int i) {
  int o = clamp((int)((long)i * p.out[d] / p.in[d]), 0, p.out[d]);
  while (o > 0 && source(p, d, o - 1).low >= i) --o;
  while (o < p.out[d] && source(p, d, o).low < i) ++o;
  return o;
}
INLINE int first_reader(const UpsampleParams p, int d, int i) { return first_from(p, d, LINEAR ? max(i - 1, 0) : i); }
INLINE int end_reader(const UpsampleParams p, int d, int i) { return first_from(p, d, i + 1); }
#if LINEAR
INLINE T share(Source s, int i) { return (s.low == i ? 1 - s.weight : (T)0) + (s.high == i ? s.weight : (T)0); }
#else
INLINE T share(Source s, int i) { return 1; }
#endif

#if ROWS
#define ROW_OF(i, columns) (i)
#define FOR_COLUMNS(x, i, columns) for (int x = 0; x < (columns); ++x)
#else
#define ROW_OF(i, columns) ((INDEX)(i) / (INDEX)(columns))
#define FOR_COLUMNS(x, i, columns) const int x = (INDEX)(i) % (INDEX)(columns);
#endif

GROUP __kernel void forward(__global void *target_base, ulong target_offset, __global const void *source_base,
                            ulong source_offset, const UpsampleParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = ROW_OF(i, p.out[1]);
    const Source y = source(p, 0, row % p.out[0]);
    __global STYPE(A) *out = AT(A, target_base, target_offset) + row * p.out[1];
    __global const STYPE(A) *plane =
        AT_CONST(A, source_base, source_offset) + row / p.out[0] * p.in[0] * p.in[1];
    __global const STYPE(A) *low = plane + (long)y.low * p.in[1], *high = plane + (long)y.high * p.in[1];
    FOR_COLUMNS(x, i, p.out[1]) {
      const Source c = source(p, 1, x);
#if LINEAR
      const T above = (T)LOAD(A, low, c.low) * (1 - c.weight) + (T)LOAD(A, low, c.high) * c.weight;
      const T below = (T)LOAD(A, high, c.low) * (1 - c.weight) + (T)LOAD(A, high, c.high) * c.weight;
      STORE(A, out, x, RESULT(above * (1 - y.weight) + below * y.weight));
#else
      STORE(A, out, x, LOAD(A, low, c.low));
#endif
    }
  }
}

GROUP __kernel void backward(__global void *target_base, ulong target_offset, __global const void *source_base,
                             ulong source_offset, const UpsampleParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = ROW_OF(i, p.in[1]);
    const int y = row % p.in[0], y0 = first_reader(p, 0, y), y1 = end_reader(p, 0, y);
    __global STYPE(A) *in = AT(A, target_base, target_offset) + row * p.in[1];
    __global const STYPE(A) *plane =
        AT_CONST(A, source_base, source_offset) + row / p.in[0] * p.out[0] * p.out[1];
    FOR_COLUMNS(x, i, p.in[1]) {
      const int x0 = first_reader(p, 1, x), x1 = end_reader(p, 1, x);
      T sum = 0;
      for (int oy = y0; oy < y1; ++oy) {
        const T weight = share(source(p, 0, oy), y);
        for (int ox = x0; ox < x1; ++ox) {
#if LINEAR
          sum += weight * share(source(p, 1, ox), x) * (T)LOAD(A, plane, (long)oy * p.out[1] + ox);
#else
          sum += (T)LOAD(A, plane, (long)oy * p.out[1] + ox);
#endif
        }
      }
      STORE(A, in, x, RESULT(sum));
    }
  }
}
