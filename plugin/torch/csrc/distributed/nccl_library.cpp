// Loads libnccl.so.2 and libcuda.so.1.
#include "nccl_library.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <mutex>

namespace torch_ocl::distributed::nccl {
namespace {

std::string load(Functions& table, const std::string& path) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return "there is no libcuda.so.1, which comes with NVIDIA's driver";
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr && !path.empty()) library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return "there is no libnccl.so.2 (pip install nvidia-nccl-cu12, or a CUDA build of torch)";
#define X(field, name, parameters)                                             \
  table.field = reinterpret_cast<decltype(table.field)>(dlsym(library, name)); \
  if (table.field == nullptr) return "libnccl.so.2 is too old: it lacks " name;
  OCLTENSOR_NCCL_FUNCTIONS(X)
#undef X
  table.error_text =
      reinterpret_cast<decltype(table.error_text)>(dlsym(library, "ncclGetErrorString"));
  if (table.error_text == nullptr) return "libnccl.so.2 lacks ncclGetErrorString";
#define X(field, name, parameters)                                                          \
  table.driver.field = reinterpret_cast<decltype(table.driver.field)>(dlsym(driver, name)); \
  if (table.driver.field == nullptr) return "libcuda.so.1 is too old: it lacks " name;
  OCLTENSOR_NCCL_DRIVER_FUNCTIONS(X)
#undef X
  if (const Result result = table.driver.init(0); result != 0)
    return "cuInit failed: " + std::to_string(result);
  return {};
}

}  // namespace

const Functions& functions(const std::string& path) {
  static Functions table{};
  static std::once_flag once;
  static std::string& failure = *new std::string;
  std::call_once(once, [&] { failure = load(table, path); });
  TORCH_CHECK(failure.empty(), "ocl: the engine nccl cannot be used: ", failure);
  return table;
}

void check(const Functions& library, Result result, const char* call) {
  TORCH_CHECK(result == 0, call, " failed: ", library.error_text(result), " (", result, ")");
}

void check_driver(Result result, const char* call) {
  TORCH_CHECK(result == 0, call, " failed: CUDA's error ", result);
}

}  // namespace torch_ocl::distributed::nccl
