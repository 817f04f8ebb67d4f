// The table of kernel providers.
#include "providers.h"

#include <algorithm>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/name_patterns.h"
#include "runtime/device.h"

namespace ocltensor::opencl {
namespace {

// `missing` of a row that depends on the devices is put in by providers().
constexpr Provider kProviders[] = {
    {"ptx", "matrix_unit", "NVIDIA's matrix units",
     "mm,addmm,bmm,baddbmm,convolution,convolution_backward,linear*,"
     "_scaled_dot_product_fused_attention_overrideable",
     nullptr},
    {"intel_matrix", "matrix_unit", "Intel's matrix units", "",
     "this version has no kernels for Intel's matrix units"},
    {"clblast", "clblast", "the CLBlast library", "", "this version is built without CLBlast"},
    {"vkfft", nullptr, "the VkFFT library", "",
     "this version is built without VkFFT: its own Fourier transforms take every length"},
    {"portable", "portable", "the project's kernels in OpenCL C", "*", nullptr}};

std::vector<Provider> present_providers() {
  std::vector<Provider> list(std::begin(kProviders), std::end(kProviders));
  const bool hopper = std::ranges::any_of(device_list().devices,
                                          [](const auto& device) { return device->caps().hopper; });
  if (!hopper)
    list.front().missing = "no device here has the matrix units of NVIDIA's Hopper generation";
  return list;
}

}  // namespace

std::span<const Provider> providers() {
  static const std::vector<Provider>& list = *new std::vector<Provider>(present_providers());
  return list;
}

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
