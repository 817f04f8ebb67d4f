// Matrices whose elements E are real or, with COMPLEX, complex numbers of parts TYPE (f32 or f64), and teams
// of GROUP work-items that share a matrix: one on CPU drivers, a work-group on GPUs.
#ifndef OCLTENSOR_MATRIX_ELEMENTS_H
#define OCLTENSOR_MATRIX_ELEMENTS_H
#define PART TYPE
#include "complex.h"
typedef creal T;
#define EPSILON_f32 FLT_EPSILON
#define EPSILON_f64 DBL_EPSILON
#define SMALLEST_f32 FLT_MIN
#define SMALLEST_f64 DBL_MIN
#define EPSILON CAT(EPSILON_, TYPE)
// Beside numbers smaller than this, other numbers that matter may be denormal, without full precision.
#define LEAST (CAT(SMALLEST_, TYPE) / EPSILON / EPSILON)

// A condition that only real matrices can fulfil.
#if COMPLEX
#define IF_REAL(x) false
typedef cplx E;
INLINE E element(T re) { return Z(re, 0); }
INLINE E mul(E a, E b) { return cmul(a, b); }
INLINE E quotient(E a, E b) { return cdiv(a, b); }
INLINE E conjugate(E a) { return cconj(a); }
INLINE T real_of(E a) { return a.x; }
INLINE T modulus(E a) { return cabs_(a); }
INLINE T square(E a) { return a.x * a.x + a.y * a.y; }
INLINE T sum_of_parts(E a) { return fabs(a.x) + fabs(a.y); }
INLINE T larger_part(E a) { return isnan(a.x) || fabs(a.x) > fabs(a.y) ? fabs(a.x) : fabs(a.y); }
INLINE cplx complex_of(E a) { return a; }
INLINE cplx times(E a, cplx b) { return cmul(a, b); }
#else
#define IF_REAL(x) (x)
typedef T E;
INLINE E element(T re) { return re; }
INLINE E mul(E a, E b) { return a * b; }
INLINE E quotient(E a, E b) { return a / b; }
INLINE E conjugate(E a) { return a; }
INLINE T real_of(E a) { return a; }
INLINE T modulus(E a) { return fabs(a); }
INLINE T square(E a) { return a * a; }
INLINE T sum_of_parts(E a) { return fabs(a); }
INLINE T larger_part(E a) { return fabs(a); }
INLINE cplx complex_of(E a) { return Z(a, 0); }
INLINE cplx times(E a, cplx b) { return a * b; }
#endif
#define ELEMENTS(base, offset) ((__global E *)((__global char *)(base) + (offset)))
#define ELEMENTS_CONST(base, offset) ((__global const E *)((__global const char *)(base) + (offset)))

INLINE T larger(T x, T y) { return y > x || isnan(y) ? y : x; }

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
#define PARTIALS(name) __local T name[GROUP];
#define PARTIALS_OF(name) name
#define TEAM_SUM(x, name) team_sum(x, name)
#define TEAM_LARGEST(x, name) team_largest(x, name)
INLINE T team_sum(T own, __local T *partials) {
  partials[LANE] = own;
  SYNC;
  for (int reach = GROUP / 2; reach > 0; reach /= 2) {
    if (LANE < reach) partials[LANE] += partials[LANE + reach];
    SYNC;
  }
  const T sum = partials[0];
  SYNC;
  return sum;
}
INLINE T team_largest(T own, __local T *partials) {
  partials[LANE] = own;
  SYNC;
  for (int reach = GROUP / 2; reach > 0; reach /= 2) {
    if (LANE < reach) partials[LANE] = larger(partials[LANE], partials[LANE + reach]);
    SYNC;
  }
  const T largest = partials[0];
  SYNC;
  return largest;
}
#endif
#define FOR_TEAM(i, first, end) for (long i = (first) + LANE; i < (end); i += GROUP)
#endif
