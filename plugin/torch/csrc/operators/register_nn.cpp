// Registers the kernels of nn.def, which generate_registration.py writes.
#define OCL_TABLE "nn.def"
#include "register_table.h"
