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

// Whether texts are those that the build has embedded, in which OUTLINED has a meaning.
bool is_embedded();
// The text. Throws Error(TB_E_COMPILE) if OCLTENSOR_KERNEL_DIR lacks the file.
std::string text_of(const Source& source);
// The text with its #include "..." lines replaced by the headers of that name, from any folder
// under kernels, each once. Throws Error(TB_E_COMPILE) if a file is missing.
std::string expand(const Source& source);

// For drivers that take no structures by value: replaces every kernel parameter `const XParams p`
// by a buffer and an offset, and makes `p` a copy at the kernel's start. Launch::value() binds such
// parameters accordingly.
std::string structures_in_memory(const std::string& text);

}  // namespace ocltensor::opencl
