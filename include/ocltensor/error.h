// Errors inside the library are typed exceptions; they become a tb_status once, at the C boundary
// (guarded()).
#pragma once

#include <fmt/core.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "ocltensor/api.h"
#include "tensor_backend/plugin.h"

namespace ocltensor {

// The statuses of the C ABI by name.
enum class Status : tb_status {
  Ok = TB_OK,
  Unsupported = TB_UNSUPPORTED,
  NotReady = TB_NOT_READY,
  Invalid = TB_E_INVALID,
  Abi = TB_E_ABI,
  OutOfMemory = TB_E_OUT_OF_MEMORY,
  DeviceLost = TB_E_DEVICE_LOST,
  Compile = TB_E_COMPILE,
  Unavailable = TB_E_UNAVAILABLE,
  State = TB_E_STATE,
  Internal = TB_E_INTERNAL,
  Index = TB_E_INDEX,
};
// "out of memory", ...: for messages.
constexpr const char* name(Status status) {
  switch (status) {
    case Status::Ok: return "ok";
    case Status::Unsupported: return "unsupported";
    case Status::NotReady: return "not ready";
    case Status::Invalid: return "invalid";
    case Status::Abi: return "ABI";
    case Status::OutOfMemory: return "out of memory";
    case Status::DeviceLost: return "device lost";
    case Status::Compile: return "compile";
    case Status::Unavailable: return "unavailable";
    case Status::State: return "state";
    case Status::Internal: return "internal";
    case Status::Index: return "index";
  }
  return "unknown";
}

class Error : public std::runtime_error {
 public:
  Error(tb_status status, uint32_t reason, const std::string& text, int32_t native = 0)
      : std::runtime_error(text), status_(status), reason_(reason), native_(native) {}
  tb_status status() const { return status_; }
  Status code() const { return static_cast<Status>(status_); }
  uint32_t reason() const { return reason_; }  // TB_REASON_*, meaningful with TB_UNSUPPORTED
  int32_t native() const { return native_; }   // the driver's code, 0 if none

 private:
  tb_status status_;
  uint32_t reason_;
  int32_t native_;
};

// A dimension that the tensor does not have; a separate type so that hosts can raise their own for
// it.
class RangeError : public Error {
 public:
  explicit RangeError(const std::string& text) : Error(TB_E_INVALID, TB_REASON_NONE, text) {}
};

// Memory that cannot be had: of the device, of pinned or of host memory. The process may go on,
// with less of it.
class OutOfMemoryError : public Error {
 public:
  OutOfMemoryError(const std::string& text, int32_t native = 0)
      : Error(TB_E_OUT_OF_MEMORY, TB_REASON_NONE, text, native) {}
};

// Throws an Error, or the class that its status has.
[[noreturn]] inline void raise(tb_status status, uint32_t reason, const std::string& text,
                               int32_t native = 0) {
  if (status == TB_E_OUT_OF_MEMORY) throw OutOfMemoryError(text, native);
  throw Error(status, reason, text, native);
}

template <typename... T>
[[noreturn]] void fail(tb_status status, fmt::format_string<T...> text, T&&... values) {
  raise(status, TB_REASON_NONE, fmt::format(text, std::forward<T>(values)...));
}

// Declines an operator: nothing was enqueued or written.
template <typename... T>
[[noreturn]] void unsupported(uint32_t reason, fmt::format_string<T...> text, T&&... values) {
  throw Error(TB_UNSUPPORTED, reason, fmt::format(text, std::forward<T>(values)...));
}

// A broken contract of the caller: TB_E_INVALID.
template <typename... T>
void check(bool condition, fmt::format_string<T...> text, T&&... values) {
  if (!condition) [[unlikely]]
    fail(TB_E_INVALID, text, std::forward<T>(values)...);
}

// Fills a caller-owned tb_error (may be NULL) and returns the status.
OCLTENSOR_API tb_status report(tb_error* error, tb_status status, uint32_t reason, int32_t native,
                               const char* text) noexcept;

// Throws the Error that a tb_status and its tb_error describe; TB_OK and TB_NOT_READY pass.
class ErrorBuffer {
 public:
  ErrorBuffer() {
    error_ = {sizeof(tb_error), TB_OK, 0, 0, sizeof text_, text_};
    text_[0] = 0;
  }
  tb_error* get() { return &error_; }
  const char* text() const { return text_; }
  uint32_t reason() const { return error_.reason; }
  void raise_if_failed(tb_status status) {
    if (status != TB_OK && status != TB_NOT_READY) [[unlikely]]
      raise(status, error_.reason, text_, error_.native);
  }

 private:
  tb_error error_;
  char text_[4096];
};

// Runs `body`, which returns void or tb_status, and turns exceptions into a status. Exceptions are
// caught nowhere else at the C boundary.
template <typename Body>
tb_status guarded(tb_error* error, Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return TB_OK;
    } else {
      return body();
    }
  } catch (const Error& e) {
    return report(error, e.status(), e.reason(), e.native(), e.what());
  } catch (const std::bad_alloc&) {
    return report(error, TB_E_OUT_OF_MEMORY, 0, 0, "out of host memory");
  } catch (const std::exception& e) {
    return report(error, TB_E_INTERNAL, 0, 0, e.what());
  } catch (...) {
    return report(error, TB_E_INTERNAL, 0, 0, "unknown exception");
  }
}

}  // namespace ocltensor
