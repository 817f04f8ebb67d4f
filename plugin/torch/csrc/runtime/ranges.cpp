// PyTorch reports its ranges to a callback, which is registered only while a trace is recorded.
#include "ranges.h"

#include <ATen/record_function.h>

#include <mutex>
#include <optional>

#include "plugin.h"

namespace torch_ocl {
namespace {

// Ranges of a thread lie within each other; asynchronous ones end on other threads.
std::unique_ptr<at::ObserverContext> begin_range(const at::RecordFunction& range) {
  if (!range.isAsync()) (void)api().profiler->push_range(range.name(), nullptr);
  return nullptr;
}
void end_range(const at::RecordFunction& range, at::ObserverContext*) {
  if (!range.isAsync()) (void)api().profiler->pop_range(nullptr);
}

}  // namespace

void follow_profiler(const tb_api& api) {
  static std::mutex& mutex = *new std::mutex;
  static std::optional<at::CallbackHandle>& observer = *new std::optional<at::CallbackHandle>;
  int32_t enabled = 0;
  if (api.profiler->is_enabled(&enabled, nullptr) != TB_OK) return;
  const std::lock_guard lock(mutex);
  if ((enabled != 0) == observer.has_value()) return;
  if (enabled != 0) {
    observer = at::addGlobalCallback(
        at::RecordFunctionCallback(begin_range, end_range).scopes({at::RecordScope::USER_SCOPE}));
  } else {
    at::removeCallback(*observer);
    observer.reset();
  }
}

}  // namespace torch_ocl
