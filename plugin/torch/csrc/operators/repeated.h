// Tensors that repeat elements, as expand() makes them: one stride is 0.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_ocl {

inline bool repeats(const at::Tensor& tensor, int64_t dim) {
  return tensor.stride(dim) == 0 && tensor.size(dim) > 1;
}

inline bool has_repeats(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense() || tensor.numel() == 0) return false;
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (repeats(tensor, d)) return true;
  return false;
}

// Each element once, along the same dimensions: a repeated one has size 1 there.
inline at::Tensor unrepeated(at::Tensor tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (repeats(tensor, d)) tensor = tensor.narrow(d, 0, 1);
  return tensor;
}

}  // namespace torch_ocl
