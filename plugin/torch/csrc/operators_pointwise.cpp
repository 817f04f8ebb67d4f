// Registers the kernels of pointwise.def.
#define OCL_TABLE "pointwise.def"
#include "register_table.h"
