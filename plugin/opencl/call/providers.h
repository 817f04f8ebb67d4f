// Where kernels come from: a table of providers.
#pragma once

#include <span>
#include <string_view>

namespace ocltensor::opencl {

inline constexpr std::string_view kPortable = "portable";
inline constexpr std::string_view kPtx = "ptx";

struct Provider {
  const char* name;
  const char* library;  // its name in preferred_blas_library(), or nullptr
  const char* what;
  const char* operators;  // patterns of the operators that it has kernels for, apart by commas
  const char* missing;    // why there is none of it, on any device; nullptr: it is there
};

// In the order in which they are asked.
std::span<const Provider> providers();
// By OCLTENSOR_DISABLED_PROVIDERS. Throws Error(TB_E_INVALID) where that names no provider.
bool is_provider_enabled(std::string_view name);
// Throws Error(TB_E_INVALID) for a list with a name that is none.
void check_providers(std::string_view list);

}  // namespace ocltensor::opencl
