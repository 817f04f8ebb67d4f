// Registered backends: a device type name and the tables behind it. Position 0 is the CPU.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "base/operators.h"
#include "ocltensor/device.h"
#include "ocltensor/error.h"

namespace ocltensor {

inline constexpr int kMaxBackends = 8;

// Never destroyed: tensors may outlive main().
struct Backend {
  uint8_t id = 0;
  std::string type;  // "cpu", "ocl"
  std::string path;  // of the plugin; empty for the CPU
  const tb_api* api = nullptr;
  // By position in operators(): nullptr until looked up, then the operator or kMissingOp.
  std::unique_ptr<std::atomic<tb_op>[]> ops;

  int device_count() const;  // throws the backend's error
  // The operator, or nullptr if this backend has none of that name.
  tb_op find(const Operator& op);
};

// These functions are thread-safe; the first use registers the CPU.
Backend& backend(uint8_t id);
inline Backend& backend(Device device) { return backend(device.backend()); }
int backend_count();
Backend* find_backend(std::string_view type);  // nullptr if it is not registered
// TB_E_INVALID if the type is taken or the table is defective.
Backend& register_backend(std::string_view type, const tb_api* api, const std::string& path);
// The backend of a device type, which is loaded if it is not registered. nullptr, with the reason,
// if there is none.
Backend* find_or_load_backend(std::string_view type, std::string* reason);

// Sets a switch of one backend. TB_UNSUPPORTED if the backend has no switch of that name, even
// where the backend itself answers otherwise.
tb_status set_switch(const Backend& b, const char* name, const char* value, ErrorBuffer& error);

// Calls one function of a backend's tables; a failure becomes an Error that begins with `what`.
template <typename Function, typename... T>
tb_status invoke_api(const char* what, Function function, T... args) {
  ErrorBuffer error;
  const tb_status status = function(args..., error.get());
  if (status != TB_OK && status != TB_NOT_READY) [[unlikely]]
    raise(status, error.reason(), fmt::format("{}: {}", what, error.text()), error.get()->native);
  return status;
}

}  // namespace ocltensor
