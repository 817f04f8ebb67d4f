// What the factorisations' kernels share. TYPE is float or double; panels are 32 columns wide, their rows are
// padded to that.
#ifndef OCLTENSOR_LINALG_H
#define OCLTENSOR_LINALG_H
#include "linalg_params.h"
#include "types.h"
#define PANEL 32
typedef CTYPE(TYPE) T;
#define EPSILON_f32 FLT_EPSILON
#define EPSILON_f64 DBL_EPSILON
#define SMALLEST_f32 FLT_MIN
#define SMALLEST_f64 DBL_MIN
// Beside numbers smaller than this, other numbers that matter may be denormal, without full precision.
#define LEAST (CAT(SMALLEST_, TYPE) / CAT(EPSILON_, TYPE) / CAT(EPSILON_, TYPE))
// The unit that a reflector is scaled by, from a column's diagonal element and the largest one below: numbers
// of the smallest exponents have too few digits for a reflection.
#define UNIT_OF(alpha, largest) (fmax(fabs(alpha), largest) < LEAST ? fmax(fabs(alpha), largest) : (T)1)
#if CPU_STYLE
typedef CVEC(TYPE) T16;
typedef CVEC(MASK) M16;  // as wide as TYPE
// Lanes of the panel's two vectors that are right of column i.
#define LANES ((M16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define RIGHT_OF(i, v) (LANES + (M16)(16 * (v)) > (M16)(i))
#endif
#endif
