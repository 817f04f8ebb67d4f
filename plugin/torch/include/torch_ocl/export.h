// The export mark of the library torch_ocl: it exports what is marked TORCH_OCL_API, nothing else.
#pragma once

#define TORCH_OCL_API __attribute__((visibility("default")))
