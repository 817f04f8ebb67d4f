// Registers the kernels of nn.def.
#define OCL_TABLE "nn.def"
#include "register_table.h"
