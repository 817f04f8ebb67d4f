// A fallback is a call of the plugin's trace.
#include "traced_fallback.h"

#include "runtime/plugin.h"

namespace torch_ocl {

TracedFallback::TracedFallback(const std::string& name)
    : open_(api().profiler->begin_call("fallback", name.c_str(), nullptr) == TB_OK) {}
TracedFallback::~TracedFallback() {
  if (open_) (void)api().profiler->end_call(nullptr);
}

}  // namespace torch_ocl
