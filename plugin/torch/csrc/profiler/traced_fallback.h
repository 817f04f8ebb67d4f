// CPU fallbacks on the plugin's traces, of which the plugin learns from PyTorch only.
#pragma once

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

}  // namespace torch_ocl
