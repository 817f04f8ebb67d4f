// What the factorisations' kernels share. TYPE is float or double; panels are 32 columns wide, their rows are
// padded to that.
#ifndef OCLTENSOR_LINALG_H
#define OCLTENSOR_LINALG_H
#include "linalg_params.h"
#include "types.h"
#define PANEL 32
typedef CTYPE(TYPE) T;
#if CPU_STYLE
typedef CVEC(TYPE) T16;
typedef CVEC(MASK) M16;  // as wide as TYPE
// Lanes of the panel's two vectors that stand right of column i.
#define LANES ((M16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define RIGHT_OF(i, v) (LANES + (M16)(16 * (v)) > (M16)(i))
#endif
#endif
