// Warming up: repeats rehearsals and builds until no program is missing.
#include "ocltensor/warm_up.h"

#include <cstddef>
#include <exception>

#include "host/core/backend.h"
#include "ocltensor/stream.h"

namespace ocltensor {
namespace {

// False if the backend compiles nothing, or is older than rehearsals.
bool begin_rehearsal(const tb_stream_api& api, const Stream& stream) {
  if (api.struct_size <= offsetof(tb_stream_api, build_missing)) return false;
  ErrorBuffer error;
  const tb_status status = api.begin_rehearsal(stream.handle(), error.get());
  if (status == TB_UNSUPPORTED) return false;
  if (status != TB_OK) fail(status, "begin a rehearsal: {}", error.text());
  return true;
}

}  // namespace

WarmUp warm_up(Device device, const std::function<void()>& body) {
  const Stream stream = Stream::create(device);
  const tb_stream_api& api = *backend(device).api->stream;
  const StreamGuard guard(stream);
  WarmUp result{0, 0};
  while (true) {
    const bool rehearses = begin_rehearsal(api, stream);
    std::exception_ptr failure;
    try {
      body();
    } catch (...) {  // a body that waits for a result fails as long as a program is missing
      failure = std::current_exception();
    }
    uint32_t missing = 0;
    if (rehearses) invoke_api("end a rehearsal", api.end_rehearsal, stream.handle(), &missing);
    stream.synchronize();
    ++result.calls;
    if (missing == 0 && failure) std::rethrow_exception(failure);
    if (missing == 0) return result;
    result.programs += missing;
    while (missing > 0) invoke_api("build programs", api.build_missing, stream.handle(), &missing);
  }
}

}  // namespace ocltensor
