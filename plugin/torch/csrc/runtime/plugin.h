// The plugin as the adapter uses it: loaded once, its errors turned into PyTorch's exceptions.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <string>
#include <string_view>
#include <utility>

#include "ocltensor/error.h"
#include "tensor_backend/plugin.h"
#include "torch_ocl/torch_ocl.h"

// Beside TORCH_OCL_API's public functions (torch_ocl/torch_ocl.h) the library exports what the
// Python module calls.
namespace torch_ocl {

inline constexpr c10::DeviceType kOcl = c10::DeviceType::PrivateUse1;
inline constexpr int kMaxDevices = 64;  // PyTorch does not see further ones

// The plugin's tables; the first call loads it. Throws RuntimeError with the reason of every
// refusal if no plugin can be loaded.
TORCH_OCL_API const tb_api& api();
// The same without throwing: nullptr, and unavailable_reason() says why.
TORCH_OCL_API const tb_api* api_or_null() noexcept;
TORCH_OCL_API const tb_api* api_if_loaded() noexcept;  // nullptr if it is not loaded yet
// Where the plugin was loaded from, and its version; empty without one.
TORCH_OCL_API std::string plugin_path();
TORCH_OCL_API std::string plugin_version();
// The plugin's text about the drivers and devices that it found or refused.
TORCH_OCL_API std::string device_report();
// Throws RuntimeError with unavailable_reason() if there is no device.
TORCH_OCL_API void require_device();
// Whether this is a child of a process that used the driver before fork(): nothing works then.
TORCH_OCL_API bool is_in_bad_fork() noexcept;

// Throws the exception that PyTorch's users expect for `status`: TB_E_OUT_OF_MEMORY is
// c10::OutOfMemoryError, TB_UNSUPPORTED is c10::NotImplementedError, TB_E_INDEX is c10::IndexError,
// everything else c10::Error (RuntimeError).
[[noreturn]] TORCH_OCL_API void raise(tb_status status, const char* what, const char* text);
// The same for an error of src/base, whose text may already begin with `what`.
[[noreturn]] void raise(const ocltensor::Error& error, std::string_view what);
// For functions that may not throw: logs the error instead.
TORCH_OCL_API void log_failure(tb_status status, const char* what, const char* text) noexcept;

// Calls a function of the ABI whose last parameter is a tb_error*, and throws its error. Returns
// the status: TB_OK or TB_NOT_READY.
template <typename Function, typename... Args>
tb_status call_api(const char* what, Function function, Args&&... args) {
  ocltensor::ErrorBuffer error;
  const tb_status status = function(std::forward<Args>(args)..., error.get());
  if (status != TB_OK && status != TB_NOT_READY) [[unlikely]]
    raise(status, what, error.text());
  return status;
}

// The same for destructors and deleters: an error is logged.
template <typename Function, typename... Args>
void call_api_noexcept(const char* what, Function function, Args&&... args) noexcept {
  ocltensor::ErrorBuffer error;
  const tb_status status = function(std::forward<Args>(args)..., error.get());
  if (status != TB_OK && status != TB_NOT_READY) [[unlikely]]
    log_failure(status, what, error.text());
}

}  // namespace torch_ocl
