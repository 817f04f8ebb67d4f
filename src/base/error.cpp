// Writing an error into the caller's buffer.
#include "ocltensor/error.h"

#include <algorithm>
#include <cstring>

namespace ocltensor {

tb_status report(tb_error* error, tb_status status, uint32_t reason, int32_t native,
                 const char* text) noexcept {
  if (error == nullptr || error->struct_size < TB_ERROR_SIZE_V1) return status;
  error->code = status;
  error->reason = reason;
  error->native = native;
  if (error->message != nullptr && error->capacity > 0) {
    const size_t length = std::min<size_t>(std::strlen(text), error->capacity - 1);
    std::memcpy(error->message, text, length);
    error->message[length] = 0;
  }
  return status;
}

}  // namespace ocltensor
