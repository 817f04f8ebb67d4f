// What torch.backends.ocl tells of scaled dot product attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace torch_ocl {

// What the fused kernels do not support of these arguments; empty if they take them.
std::string attention_refusal(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const std::optional<at::Tensor>& mask,
                              double dropout, bool grouped);
// The ways to attention in the form of the plugin's report of algorithms.
std::string attention_report();

}  // namespace torch_ocl
