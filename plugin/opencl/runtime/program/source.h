// Kernel sources: files under kernels/, embedded by the build (embed_kernels.py) or read from
// OCLTENSOR_KERNEL_DIR.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ocltensor::opencl {

struct Source {
  const char* path;  // "elementwise/elementwise_cpu.cl", relative to kernels/
  const char* text;
};

// The file as it is. Throws Error(TB_E_COMPILE) where OCLTENSOR_KERNEL_DIR lacks it.
std::string text_of(const Source& source);
// The text with its #include "..." lines replaced by the headers of that name, wherever they lie
// under kernels, each once. Throws Error(TB_E_COMPILE) for a file that is missing.
std::string expand(const Source& source);

// For drivers that take no structures by value: every kernel parameter `const XParams p` becomes a
// buffer and an offset, and `p` a copy made at the kernel's start. Launch::value binds such
// parameters to match.
std::string structures_in_memory(const std::string& text);

}  // namespace ocltensor::opencl
