// Asks drivers for parameters, and writes them as lines: "k" and a kernel's name, then "p" or "l"
// (local), the type and the name of each parameter, with tabs between.
#include "parameters.h"

#include <algorithm>

namespace ocltensor::opencl {
namespace {

// What a clGet*Info function tells as text; empty if it does not.
template <typename Get>
std::string told_by(Get get) {
  size_t size = 0;
  if (get(0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, 0);
  if (get(size, text.data(), nullptr) != CL_SUCCESS) return {};
  return text.c_str();
}

KernelParameter ask(cl_kernel kernel, cl_uint index) {
  const auto text = [&](cl_kernel_arg_info what) {
    return told_by([&](size_t n, void* to, size_t* size) {
      return cl().clGetKernelArgInfo(kernel, index, what, n, to, size);
    });
  };
  cl_kernel_arg_address_qualifier space = CL_KERNEL_ARG_ADDRESS_PRIVATE;
  (void)cl().clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space,
                                &space, nullptr);
  return {text(CL_KERNEL_ARG_TYPE_NAME), text(CL_KERNEL_ARG_NAME),
          space == CL_KERNEL_ARG_ADDRESS_LOCAL};
}

// Cuts the text up to a separator off, and the separator.
std::string_view cut(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace

std::vector<Handle<cl_kernel>> kernels_of(cl_program program) {
  cl_uint count = 0;
  check_cl(cl().clCreateKernelsInProgram(program, 0, nullptr, &count), "clCreateKernelsInProgram");
  std::vector<cl_kernel> made(count);
  if (count > 0)
    check_cl(cl().clCreateKernelsInProgram(program, count, made.data(), nullptr),
             "clCreateKernelsInProgram");
  std::vector<Handle<cl_kernel>> kernels;
  kernels.reserve(count);
  for (const cl_kernel kernel : made) kernels.emplace_back(kernel);
  return kernels;
}

std::string name_of(cl_kernel kernel) {
  return told_by([&](size_t n, void* to, size_t* size) {
    return cl().clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, n, to, size);
  });
}

ProgramParameters ask_parameters(cl_program program) {
  ProgramParameters all;
  for (const Handle<cl_kernel>& kernel : kernels_of(program)) {
    cl_uint count = 0;
    check_cl(cl().clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr),
             "clGetKernelInfo");
    std::vector<KernelParameter>& parameters = all[name_of(kernel.get())];
    for (cl_uint i = 0; i < count; ++i) parameters.push_back(ask(kernel.get(), i));
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
