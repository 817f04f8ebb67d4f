// The plugin's profiler for Python, and CPU fallbacks, of which the plugin learns from PyTorch
// only.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <string>

namespace torch_ocl {

// Enters a CPU fallback in the plugin's traces, log and statistics.
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
