// Choosing an extreme value and its position: a NaN is extreme; of equal values the first counts.
//   COMPUTE, POSITION  types of equal width; A the input's, VALUE the output's; COMPARE: > or <
//   VALUES, INDICES    1 if that output is wanted
#include "types.h"
#include "self_comparison.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
typedef CTYPE(POSITION) P;
typedef CVEC(POSITION) P16;

typedef struct {
  T value;
  long at;
} Best;

INLINE bool better(T x, T best) { return x COMPARE best || (x != x && best == best); }
INLINE bool same(T x, T y) { return x == y || (x != x && y != y); }
INLINE Best choose(Best p, Best q) {
  const bool second = better(q.value, p.value) || (same(q.value, p.value) && q.at < p.at);
  return second ? q : p;
}
#define ARG_OUTPUTS                                                                             \
  __global void *value_base, ulong value_offset, __global void *index_base, ulong index_offset
#define WRITE(o, best)                                                                          \
  if (VALUES) STORE(VALUE, AT(VALUE, value_base, value_offset), o, TO(VALUE, (best).value));    \
  if (INDICES) STORE(i64, AT(i64, index_base, index_offset), o, (best).at);
