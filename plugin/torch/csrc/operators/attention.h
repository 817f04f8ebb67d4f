// Reports of scaled dot product attention for torch.backends.ocl.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "torch_ocl/export.h"

namespace torch_ocl {

// Which of these arguments the fused kernels do not support; empty if they take them all.
TORCH_OCL_API std::string attention_refusal(const at::Tensor& query, const at::Tensor& key,
                                            const at::Tensor& value,
                                            const std::optional<at::Tensor>& mask, double dropout,
                                            bool grouped);
// The ways to compute attention, as the plugin's report of algorithms says it of its own.
struct AttentionWay {
  const char* id;
  uint64_t runs;
  bool last, disabled, general;
  const char* name;
};
std::vector<AttentionWay> attention_ways();

}  // namespace torch_ocl
