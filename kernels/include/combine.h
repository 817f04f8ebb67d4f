// How a source is combined with a target element of type A (computed in T): COMBINE is one of the functions
// below. SCALED is the source, with HAS_ALPHA times `alpha`.
#ifndef OCLTENSOR_COMBINE_H
#define OCLTENSOR_COMBINE_H
#include "self_comparison.h"
typedef CTYPE(A) T;
#if HAS_ALPHA
#define SCALED(v) (T)(alpha * (v))
#else
#define SCALED(v) (v)
#endif
INLINE T combine_replace(T a, T b) { return b; }
INLINE T combine_sum(T a, T b) { return TO(A, a + b); }
INLINE T combine_product(T a, T b) { return TO(A, a * b); }
INLINE T combine_max(T a, T b) { return a != a || a > b ? a : b; }
INLINE T combine_min(T a, T b) { return a != a || a < b ? a : b; }
#endif
