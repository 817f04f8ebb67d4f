// The table of kernel providers.
#include "providers.h"

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "base/name_patterns.h"

namespace ocltensor::opencl {
namespace {

constexpr Provider kProviders[] = {
    {"ptx", "matrix_unit", "NVIDIA's matrix units",
     "this version has no kernels for NVIDIA's matrix units"},
    {"intel_matrix", "matrix_unit", "Intel's matrix units",
     "this version has no kernels for Intel's matrix units"},
    {"clblast", "clblast", "the CLBlast library", "this version is built without CLBlast"},
    {"vkfft", nullptr, "the VkFFT library",
     "this version is built without VkFFT: its own Fourier transforms take every length"},
    {"portable", "portable", "the project's kernels in OpenCL C", nullptr}};

}  // namespace

std::span<const Provider> providers() { return kProviders; }

void check_providers(std::string_view list) {
  for (const std::string& name : split_names(list))
    check(
        std::ranges::any_of(kProviders, [&](const Provider& p) { return p.name == name; }),
        "there is no kernel provider '{}': expected ptx, intel_matrix, clblast, vkfft or portable",
        name);
}

bool is_provider_enabled(std::string_view name) {
  const std::string list = config::get_string(config::Knob::DisabledProviders);
  check_providers(list);
  const auto names = split_names(list);
  return std::ranges::find(names, name) == names.end();
}

}  // namespace ocltensor::opencl
