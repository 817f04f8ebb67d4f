// Helpers of the composites: operators made of other device operators, by ATen calls.
#pragma once

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <vector>

namespace torch_ocl {

inline at::Tensor at_least_1d(const at::Tensor& tensor) {
  return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor;
}

inline int64_t plain(const c10::SymInt& value) { return value.guard_int(__FILE__, __LINE__); }

// The result in channels_last if `like` has that format, as ATen promises for this operator.
inline at::Tensor in_format_of(const at::Tensor& like, const at::Tensor& result) {
  return result.contiguous(like.suggest_memory_format());
}

// What offsets that say where rows begin have to be: the first one 0, the last one the number of
// elements.
struct Ends {
  bool from_start, to_end;
};

// The row of each of `count` elements that lie in rows one after another: the number of offsets
// [..., rows] that are not beyond it, less 1. The device reports offsets that descend, are out of
// range or not what `ends` asks for. One launch; nothing waits. (ragged.cpp)
at::Tensor row_of_each(const at::Tensor& offsets, int64_t count, Ends ends);

// While it lives, products and sums keep the types of their arguments. Autocast has decided about a
// composite before it begins, and must not round what it computes with to 16 bits.
struct BelowAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKey::AutocastPrivateUse1};
};

// Writes `result` to the tensor of an out form: checks, resizes and converts as ATen does.
inline at::Tensor& deliver(at::Tensor& out, const at::Tensor& result) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "result type ",
              result.scalar_type(), " can't be cast to the desired output type ",
              out.scalar_type());
  TORCH_CHECK(out.device() == result.device(),
              "Expected all tensors to be on the same device, but the output is on ", out.device(),
              " and the arguments are on ", result.device());
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// Makes the kernel of X.out(args..., out) from that of X(args...).
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

// Registers a kernel under its functional name, its out name, or both. The functional form of a
// structured operator is derived by ATen from the out form, with all checks of arguments.
template <auto& kernel>
void register_out(torch::Library& library, const char* name) {
  using Signature = std::remove_reference_t<decltype(kernel)>;
  library.impl(name, TORCH_FN((OutOf<kernel, Signature>::call)));
}

}  // namespace torch_ocl
