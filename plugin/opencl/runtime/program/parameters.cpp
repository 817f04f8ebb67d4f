// Asks drivers for parameters, and writes them as lines: "k" and a kernel's name, then "p" or "l"
// (local), the type and the name of each parameter, with tabs between.
#include "parameters.h"

#include <algorithm>
#include <cctype>

#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {
namespace {

KernelParameter ask(const cl::Kernel& kernel, cl_uint index) {
  cl_int code = CL_SUCCESS;
  const auto text = [&code](std::string told) {
    return code == CL_SUCCESS ? std::string(told.c_str()) : std::string();
  };
  KernelParameter parameter;
  parameter.type = text(kernel.getArgInfo<CL_KERNEL_ARG_TYPE_NAME>(index, &code));
  parameter.name = text(kernel.getArgInfo<CL_KERNEL_ARG_NAME>(index, &code));
  const auto space = kernel.getArgInfo<CL_KERNEL_ARG_ADDRESS_QUALIFIER>(index, &code);
  parameter.is_local = code == CL_SUCCESS && space == CL_KERNEL_ARG_ADDRESS_LOCAL;
  return parameter;
}

// Cuts the text up to a separator off, and the separator.
std::string_view cut(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The next word or character of a text that is neither space nor comment; empty at its end.
std::string_view next_token(std::string_view& rest) {
  while (!rest.empty()) {
    size_t skipped = 0;
    if (std::isspace(static_cast<unsigned char>(rest[0])) != 0)
      skipped = 1;
    else if (rest.starts_with("//"))
      skipped = rest.find('\n');
    else if (rest.starts_with("/*"))
      skipped = rest.find("*/", 2) == rest.npos ? rest.npos : rest.find("*/", 2) + 2;
    else
      break;
    rest.remove_prefix(std::min(skipped, rest.size()));
  }
  size_t length = rest.empty() ? 0 : 1;
  if (length != 0 && is_word(rest[0]))
    while (length < rest.size() && is_word(rest[length])) ++length;
  const std::string_view token = rest.substr(0, length);
  rest.remove_prefix(length);
  return token;
}

}  // namespace

std::vector<std::string> declared_kernels(std::string_view source) {
  std::vector<std::string> names;
  bool is_kernel = false;
  std::string_view before, last;
  for (std::string_view token; !(token = next_token(source)).empty(); before = last, last = token) {
    if (token == "__kernel" || token == "kernel") is_kernel = true;
    if (token == ";" || token == "{") is_kernel = false;
    if (!is_kernel || token != "(" || before != "void") continue;
    names.emplace_back(last);
    is_kernel = false;
  }
  return names;
}

std::vector<std::string> kernel_names(cl_program program) {
  std::string told;
  check_cl(View<cl::Program>(program)->getInfo(CL_PROGRAM_KERNEL_NAMES, &told), "clGetProgramInfo");
  std::string_view rest = told.c_str();  // clhpp may keep the terminating zero
  std::vector<std::string> names;
  while (!rest.empty()) names.emplace_back(cut(rest, ';'));
  return names;
}

std::vector<cl::Kernel> kernels_of(cl_program program) {
  cl_uint count = 0;
  check_cl(cl().clCreateKernelsInProgram(program, 0, nullptr, &count), "clCreateKernelsInProgram");
  std::vector<cl_kernel> made(count);
  if (count > 0)
    check_cl(cl().clCreateKernelsInProgram(program, count, made.data(), nullptr),
             "clCreateKernelsInProgram");
  std::vector<cl::Kernel> kernels;
  kernels.reserve(count);
  for (const cl_kernel kernel : made) kernels.emplace_back(kernel);
  return kernels;
}

ProgramParameters ask_parameters(cl_program program) {
  ProgramParameters all;
  for (const cl::Kernel& kernel : kernels_of(program)) {
    cl_int code = CL_SUCCESS;
    const cl_uint count = kernel.getInfo<CL_KERNEL_NUM_ARGS>(&code);
    check_cl(code, "clGetKernelInfo");
    std::vector<KernelParameter>& parameters = all[kernel.getInfo<CL_KERNEL_FUNCTION_NAME>()];
    for (cl_uint i = 0; i < count; ++i) parameters.push_back(ask(kernel, i));
  }
  return all;
}

bool are_known(const ProgramParameters& parameters) {
  return std::ranges::all_of(parameters, [](const auto& kernel) {
    return std::ranges::none_of(kernel.second,
                                [](const KernelParameter& p) { return p.type.empty(); });
  });
}

std::string to_text(const ProgramParameters& parameters) {
  std::string text;
  for (const auto& [name, list] : parameters) {
    text += "k\t" + name + "\n";
    for (const KernelParameter& p : list)
      text += std::string(p.is_local ? "l\t" : "p\t") + p.type + "\t" + p.name + "\n";
  }
  return text;
}

std::optional<ProgramParameters> parameters_from(std::string_view text) {
  ProgramParameters all;
  std::vector<KernelParameter>* last = nullptr;
  while (!text.empty()) {
    std::string_view line = cut(text, '\n');
    const std::string_view kind = cut(line, '\t');
    const std::string first(cut(line, '\t'));
    if (kind == "k") {
      last = &all[first];
    } else if (last != nullptr && (kind == "p" || kind == "l")) {
      last->push_back({first, std::string(line), kind == "l"});
    } else {
      return std::nullopt;
    }
  }
  return all;
}

}  // namespace ocltensor::opencl
