// Loads libOpenCL and translates its error codes.
#include "opencl.h"

#include <dlfcn.h>

#include <mutex>

#include "ocltensor/error.h"

namespace ocltensor::opencl {
namespace {

void* library = nullptr;  // set before the table

std::string load(Functions& table) {
  for (const char* name : {"libOpenCL.so.1", "libOpenCL.so"})
    if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
  if (library == nullptr)
    return "no OpenCL loader (libOpenCL.so.1) on this system; install ocl-icd-libopencl1 and a "
           "driver";
#define X(name)                                                            \
  table.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (table.name == nullptr) return "libOpenCL.so.1 lacks " #name ": it must offer OpenCL 1.2";
  OCLTENSOR_CL_FUNCTIONS(X)
#undef X
  table.clSVMAlloc =
      reinterpret_cast<decltype(table.clSVMAlloc)>(dlsym(library, "clSVMAlloc"));  // NOLINT
  table.clSVMFree =
      reinterpret_cast<decltype(table.clSVMFree)>(dlsym(library, "clSVMFree"));  // NOLINT
  replace_recorded_entries(table);
  return {};
}

}  // namespace

std::atomic<const Functions*> detail::loaded{nullptr};

const Functions& detail::load_functions() {
  static Functions table{};
  static std::once_flag once;
  static std::string& failure = *new std::string;
  std::call_once(once, [] { failure = load(table); });
  if (!failure.empty()) [[unlikely]]
    fail(TB_E_UNAVAILABLE, "{}", failure);
  loaded.store(&table, std::memory_order_release);
  return table;
}

void* detail::look_up(const char* name) {
  (void)cl();
  void* function = dlsym(library, name);
  if (function == nullptr) fail(TB_E_UNAVAILABLE, "libOpenCL.so.1 lacks {}", name);
  return function;
}

const char* error_name(cl_int code) {
  switch (code) {
#define X(name) \
  case name: return #name;
    // clang-format off
    X(CL_SUCCESS) X(CL_DEVICE_NOT_FOUND) X(CL_DEVICE_NOT_AVAILABLE) X(CL_COMPILER_NOT_AVAILABLE)
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE) X(CL_OUT_OF_RESOURCES) X(CL_OUT_OF_HOST_MEMORY)
    X(CL_PROFILING_INFO_NOT_AVAILABLE) X(CL_MEM_COPY_OVERLAP) X(CL_BUILD_PROGRAM_FAILURE)
    X(CL_MAP_FAILURE) X(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) X(CL_INVALID_VALUE) X(CL_INVALID_DEVICE_TYPE)
    X(CL_INVALID_PLATFORM) X(CL_INVALID_DEVICE) X(CL_INVALID_CONTEXT)
    X(CL_INVALID_QUEUE_PROPERTIES) X(CL_INVALID_COMMAND_QUEUE) X(CL_INVALID_HOST_PTR)
    X(CL_INVALID_MEM_OBJECT) X(CL_INVALID_BINARY) X(CL_INVALID_BUILD_OPTIONS)
    X(CL_INVALID_PROGRAM) X(CL_INVALID_PROGRAM_EXECUTABLE) X(CL_INVALID_KERNEL_NAME)
    X(CL_INVALID_KERNEL_DEFINITION) X(CL_INVALID_KERNEL) X(CL_INVALID_ARG_INDEX)
    X(CL_INVALID_ARG_VALUE) X(CL_INVALID_ARG_SIZE) X(CL_INVALID_KERNEL_ARGS)
    X(CL_INVALID_WORK_DIMENSION) X(CL_INVALID_WORK_GROUP_SIZE) X(CL_INVALID_WORK_ITEM_SIZE)
    X(CL_INVALID_GLOBAL_OFFSET) X(CL_INVALID_EVENT_WAIT_LIST) X(CL_INVALID_EVENT)
    X(CL_INVALID_OPERATION) X(CL_INVALID_BUFFER_SIZE) X(CL_INVALID_GLOBAL_WORK_SIZE)
    X(CL_INVALID_PROPERTY)
#undef X
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    // clang-format on
    default: return "unknown OpenCL error";
  }
}

namespace {

tb_status status_of(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY: return TB_E_OUT_OF_MEMORY;
    case CL_OUT_OF_RESOURCES:
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: return TB_E_DEVICE_LOST;
    default: return TB_E_INTERNAL;
  }
}

}  // namespace

void check_cl(cl_int code, const char* call) {
  if (code == CL_SUCCESS) [[likely]]
    return;
  throw Error(status_of(code), 0, fmt::format("{} failed: {} ({})", call, error_name(code), code),
              code);
}

void raise_async(cl_int code, const char* call, const std::string& detail) {
  tb_status status = status_of(code);
  if (status == TB_E_INTERNAL) status = TB_E_DEVICE_LOST;
  throw Error(status, 0,
              fmt::format("{} failed: {} ({}); {}", call, error_name(code), code, detail), code);
}

}  // namespace ocltensor::opencl
