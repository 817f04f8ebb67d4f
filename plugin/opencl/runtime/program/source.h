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

// A text that a user or a generator wrote.
struct GivenText {
  std::string source;
  bool includes_files = false;  // which are not the plugin's: the text alone is not the program
};
// Replaces its lines `#include "ocltensor/NAME.h"` by the plugin's header NAME.h, each once, and
// puts `prefix` before it, if there are such lines. Throws as expand() does.
GivenText expand_given(const std::string& source, const std::string& prefix);

// For drivers that take no structures by value: replaces every kernel parameter `const XParams p`
// by a buffer and an offset, and makes `p` a copy at the kernel's start. Launch::value() binds such
// parameters accordingly.
std::string structures_in_memory(const std::string& text);

}  // namespace ocltensor::opencl
