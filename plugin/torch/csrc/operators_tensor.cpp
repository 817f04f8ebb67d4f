// Registers the kernels of tensor.def.
#define OCL_TABLE "tensor.def"
#include "register_table.h"
