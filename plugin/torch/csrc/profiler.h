// The plugin's profiler for Python, and what only PyTorch can tell it: CPU fallbacks and the user's
// record_function ranges.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <string>

#include "tensor_backend/plugin.h"

namespace torch_ocl {

// Puts record_function's ranges on the plugin's trace while one is being taken; call it when that
// may have changed.
void follow_profiler(const tb_api& api);

// A CPU fallback in the plugin's traces, log and statistics.
class TracedFallback {
 public:
  explicit TracedFallback(const std::string& name);
  ~TracedFallback();
  TracedFallback(const TracedFallback&) = delete;

 private:
  bool open_;
};

void bind_profiler(pybind11::module_& module);

}  // namespace torch_ocl
