// Kernel sources: files under kernels/, embedded by the build (embed_kernels.py) or read from OCLTENSOR_KERNEL_DIR.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ocltensor::opencl {

struct Source {
  const char* path;  // "pointwise/rows.cl", relative to kernels/
  const char* text;
};

// The text with its #include "..." lines replaced by the files under kernels/include, each once. Throws
// Error(TB_E_COMPILE) for a file that is missing.
std::string expand(const Source& source);

}  // namespace ocltensor::opencl
