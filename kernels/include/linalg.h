// What the factorisations' kernels share. TYPE is the numbers' type, for complex ones with that of their
// parts, PART; panels are 32 columns wide, their rows are padded to that.
#ifndef OCLTENSOR_LINALG_H
#define OCLTENSOR_LINALG_H
#include "linalg_params.h"
#include "types.h"
#define PANEL 32

// T: a number; R: a real one. Sums, differences, and products and quotients with an R are operators of
// OpenCL C for both; the functions are for everything else.
#ifndef COMPLEX
#ifdef PART
#define COMPLEX 1
#else
#define COMPLEX 0
#endif
#endif
#if COMPLEX
#include "complex.h"
typedef cplx T;
typedef creal R;
#define REAL PART
INLINE T number(R x) { return Z(x, 0); }
INLINE R real_part(T a) { return a.x; }
INLINE R imaginary_part(T a) { return a.y; }
INLINE T conjugate(T a) { return cconj(a); }
INLINE T product(T a, T b) { return cmul(a, b); }
INLINE T quotient(T a, T b) { return cdiv(a, b); }
INLINE R modulus(T a) { return cabs_(a); }
INLINE bool is_zero(T a) { return !ctrue(a); }
#else
typedef CTYPE(TYPE) T;
typedef T R;
#define REAL TYPE
INLINE T number(R x) { return x; }
INLINE R real_part(T a) { return a; }
INLINE R imaginary_part(T a) { return 0; }
INLINE T conjugate(T a) { return a; }
INLINE T product(T a, T b) { return a * b; }
INLINE T quotient(T a, T b) { return a / b; }
INLINE R modulus(T a) { return fabs(a); }
INLINE bool is_zero(T a) { return a == 0; }
#endif
// The pointers that argument pairs (base, byte offset) describe.
#define NUMBERS(base, offset) ((__global T *)((__global char *)(base) + (offset)))
#define NUMBERS_CONST(base, offset) ((__global const T *)((__global const char *)(base) + (offset)))

INLINE R larger(R x, R y) { return y > x || isnan(y) ? y : x; }
// |a| to within a factor of sqrt(2), which neither overflows nor costs a root; NaN if a part is.
INLINE R largest_part(T a) { return larger(fabs(real_part(a)), fabs(imaginary_part(a))); }
// |re| + |im|, by which LAPACK compares pivots.
INLINE R part_sum(T a) { return fabs(real_part(a)) + fabs(imaginary_part(a)); }
// The real part of a conj(b), of which |a|^2 is the case a = b.
INLINE R real_product(T a, T b) {
  return real_part(a) * real_part(b) + imaginary_part(a) * imaginary_part(b);
}

#define EPSILON_f32 FLT_EPSILON
#define EPSILON_f64 DBL_EPSILON
#define SMALLEST_f32 FLT_MIN
#define SMALLEST_f64 DBL_MIN
// Beside numbers smaller than this, other numbers that matter may be denormal, without full precision.
#define LEAST (CAT(SMALLEST_, REAL) / CAT(EPSILON_, REAL) / CAT(EPSILON_, REAL))
// The unit that a reflector is scaled by, from the sizes of a column's diagonal element and of the largest
// one below: numbers of the smallest exponents have too few digits for a reflection.
#define UNIT_OF(diagonal, largest) (fmax(diagonal, largest) < LEAST ? fmax(diagonal, largest) : (R)1)

#ifdef MASK  // vectors of real numbers, and of integers as wide as those
typedef CVEC(TYPE) T16;
typedef CVEC(MASK) M16;
// Lanes of the panel's two vectors that are right of column i.
#define LANES ((M16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define RIGHT_OF(i, v) (LANES + (M16)(16 * (v)) > (M16)(i))
#endif
#endif
