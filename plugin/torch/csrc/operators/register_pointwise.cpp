// Registers the kernels of pointwise.def, which generate_registration.py writes.
#define OCL_TABLE "pointwise.def"
#include "register_table.h"
