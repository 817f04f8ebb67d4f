// Helpers of the composites: operators made of other device operators, by ATen calls.
#pragma once

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <vector>

namespace torch_ocl {

// Host numbers as a tensor beside `like`.
template <typename T>
at::Tensor upload(const std::vector<T>& values, const at::Tensor& like) {
  return at::tensor(values).to(like.device());
}

// Writes `result` to the tensor of an out form.
inline at::Tensor& deliver(at::Tensor& out, const at::Tensor& result) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// X.out(args..., out) from X(args...).
template <auto& kernel, typename Signature>
struct OutOf;
template <auto& kernel, typename... A>
struct OutOf<kernel, at::Tensor(A...)> {
  static at::Tensor& call(A... args, at::Tensor& out) { return deliver(out, kernel(args...)); }
};
template <auto& kernel, typename... A>
struct OutOf<kernel, std::tuple<at::Tensor, at::Tensor>(A...)> {
  static std::tuple<at::Tensor&, at::Tensor&> call(A... args, at::Tensor& out, at::Tensor& more) {
    const auto [first, second] = kernel(args...);
    return {deliver(out, first), deliver(more, second)};
  }
};

// Registers a kernel under its functional name, its out name, or both. ATen derives the functional
// form of a structured operator from the out form, with all checks of arguments.
template <auto& kernel>
void register_out(torch::Library& library, const char* name) {
  using Signature = std::remove_reference_t<decltype(kernel)>;
  library.impl(name, TORCH_FN((OutOf<kernel, Signature>::call)));
}

}  // namespace torch_ocl
