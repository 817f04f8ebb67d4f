// Reports of scaled dot product attention for torch.backends.ocl.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "torch_ocl/export.h"

namespace torch_ocl {

// Which of these arguments the fused kernels do not support; empty if they take them all.
TORCH_OCL_API std::string attention_refusal(const at::Tensor& query, const at::Tensor& key,
                                            const at::Tensor& value,
                                            const std::optional<at::Tensor>& mask, double dropout,
                                            bool grouped);
// The ways to compute attention, in the form of the plugin's report of algorithms.
std::string attention_report();

}  // namespace torch_ocl
