// Loads libcuda and translates its results.
#include "cuda_driver.h"

#include <dlfcn.h>

#include <mutex>
#include <string>

#include "ocltensor/error.h"

namespace ocltensor::opencl::cuda {
namespace {

const char* name_of(const Functions& table, Result result) {
  const char* name = nullptr;
  return table.error_name(result, &name) == kSuccess && name != nullptr ? name : "unknown result";
}

std::string load(Functions& table) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "there is no libcuda.so.1, which comes with NVIDIA's driver";
#define X(field, name, parameters)                                             \
  table.field = reinterpret_cast<decltype(table.field)>(dlsym(library, name)); \
  if (table.field == nullptr) return "libcuda.so.1 is too old: it lacks " name;
  OCLTENSOR_CUDA_FUNCTIONS(X)
#undef X
  const Result result = table.init(0);
  if (result == kSuccess) return {};
  return fmt::format("cuInit failed: {} ({})", name_of(table, result), result);
}

}  // namespace

const Functions& functions() {
  static Functions table{};
  static std::once_flag once;
  static std::string& failure = *new std::string;
  std::call_once(once, [] { failure = load(table); });
  if (!failure.empty()) fail(TB_E_UNAVAILABLE, "{}", failure);
  return table;
}

void check(Result result, const char* call) {
  if (result == kSuccess) return;
  throw Error(result == kOutOfMemory ? TB_E_OUT_OF_MEMORY : TB_E_INTERNAL, 0,
              fmt::format("{} failed: {} ({})", call, name_of(functions(), result), result),
              result);
}

}  // namespace ocltensor::opencl::cuda
