// Registers the kernels of tensor.def, which generate_registration.py writes.
#define OCL_TABLE "tensor.def"
#include "register_table.h"
