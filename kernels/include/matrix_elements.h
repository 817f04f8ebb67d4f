// Matrices whose numbers (linalg.h) may be real where results are complex, and teams of GROUP work-items that
// share a matrix: one on CPU drivers, a work-group on GPUs.
#ifndef OCLTENSOR_MATRIX_ELEMENTS_H
#define OCLTENSOR_MATRIX_ELEMENTS_H
#ifdef PART
#define COMPLEX 1
#else
#define COMPLEX 0
#define PART TYPE  // of the complex results of real matrices
#endif
#include "complex.h"
#include "linalg.h"
#define EPSILON CAT(EPSILON_, REAL)

// A condition that only real matrices can fulfil, and numbers as complex ones.
#if COMPLEX
#define IF_REAL(x) false
INLINE cplx complex_of(T a) { return a; }
INLINE cplx times(T a, cplx b) { return cmul(a, b); }
#else
#define IF_REAL(x) (x)
INLINE cplx complex_of(T a) { return Z(a, 0); }
INLINE cplx times(T a, cplx b) { return a * b; }
#endif
INLINE R square(T a) { return real_product(a, a); }

#define TEAM __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#if CPU_STYLE
#define LANE 0
#define SYNC
#define PARTIALS(name)
#define PARTIALS_OF(name) 0
#define TEAM_SUM(x, name) (x)
#define TEAM_LARGEST(x, name) (x)
#else
#define LANE ((long)get_local_id(0))
#define SYNC barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE)
#define PARTIALS(name) __local R name[GROUP];
#define PARTIALS_OF(name) name
#define TEAM_SUM(x, name) team_sum(x, name)
#define TEAM_LARGEST(x, name) team_largest(x, name)
INLINE R team_sum(R own, __local R *partials) {
  partials[LANE] = own;
  SYNC;
  for (int reach = GROUP / 2; reach > 0; reach /= 2) {
    if (LANE < reach) partials[LANE] += partials[LANE + reach];
    SYNC;
  }
  const R sum = partials[0];
  SYNC;
  return sum;
}
INLINE R team_largest(R own, __local R *partials) {
  partials[LANE] = own;
  SYNC;
  for (int reach = GROUP / 2; reach > 0; reach /= 2) {
    if (LANE < reach) partials[LANE] = larger(partials[LANE], partials[LANE + reach]);
    SYNC;
  }
  const R largest = partials[0];
  SYNC;
  return largest;
}
#endif
#define FOR_TEAM(i, first, end) for (long i = (first) + LANE; i < (end); i += GROUP)
#endif
