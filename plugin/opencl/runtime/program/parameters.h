// What a driver tells of the parameters of a program's kernels. It tells it of programs that it
// compiled, and need not of those that were loaded: for these it is kept on disk, too.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/driver/opencl.h"

namespace ocltensor::opencl {

struct KernelParameter {
  std::string type;       // "const float*"; empty if the driver does not tell it
  std::string name;       // the same
  bool is_local = false;  // a pointer to __local memory
};

// By the name of the kernel.
using ProgramParameters = std::map<std::string, std::vector<KernelParameter>, std::less<>>;

// Asks the driver, of a built program. Throws as check_cl() does.
ProgramParameters ask_parameters(cl_program program);
// Whether the driver has told the types.
bool are_known(const ProgramParameters& parameters);

// As text, and back: nothing if it is no such text.
std::string to_text(const ProgramParameters& parameters);
std::optional<ProgramParameters> parameters_from(std::string_view text);

// The names of the kernels that a text declares, before any driver reads it; not those that macros
// make.
std::vector<std::string> declared_kernels(std::string_view source);
// The names of a built program's kernels, of which none is made. Throws as check_cl() does.
std::vector<std::string> kernel_names(cl_program program);

// All kernels of a built program. Throws as check_cl() does.
std::vector<cl::Kernel> kernels_of(cl_program program);

}  // namespace ocltensor::opencl
