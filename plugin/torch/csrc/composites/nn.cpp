// Weight normalisation, shuffling of channels and pixels, leaky activations and max unpooling.
#include <ATen/ops/pixel_shuffle_native.h>
#include <ATen/ops/pixel_unshuffle_native.h>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;

// All dimensions except `dim`.
std::vector<int64_t> others(const Tensor& x, int64_t dim) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != at::maybe_wrap_dim(dim, x.dim())) dims.push_back(d);
  return dims;
}

Two weight_norm(const Tensor& v, const Tensor& g, int64_t dim) {
  const Tensor norms = at::linalg_vector_norm(v, 2, others(v, dim), true);
  return {v * (g / norms), norms};
}

Two weight_norm_backward(const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms,
                         int64_t dim) {
  const Tensor along = (grad * v).sum(others(v, dim), true) / norms;
  return {(g / norms) * (grad - v * (along / norms)), along};
}

Tensor shuffle_channels(const Tensor& self, c10::SymInt symbolic) {
  const int64_t groups = symbolic.guard_int(__FILE__, __LINE__);
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with ",
              self.sizes());
  TORCH_CHECK(groups > 0 && self.size(1) % groups == 0,
              "Number of channels must be divisible by groups, which must be positive. Got ",
              self.size(1), " channels and ", groups, " groups.");
  const int64_t each = self.size(1) / groups;
  // In channels_last the channels are turned to the end, so that the result and the gradient, which
  // goes through these views, have that format.
  const bool last =
      self.dim() == 4 && self.suggest_memory_format() == at::MemoryFormat::ChannelsLast;
  const Tensor x = last ? self.permute({0, 2, 3, 1}) : self;
  const int64_t at = last ? 3 : 1;
  // All sizes are given, because a -1 is ambiguous if another size is zero.
  const Tensor result = x.unflatten(at, {groups, each}).transpose(at, at + 1).reshape(x.sizes());
  return last ? result.permute({0, 3, 1, 2}) : result;
}

Tensor shuffle_pixels(const Tensor& self, int64_t factor) {
  return in_format_of(self, at::native::math_pixel_shuffle(self, factor));
}
Tensor unshuffle_pixels(const Tensor& self, int64_t factor) {
  return in_format_of(self, at::native::math_pixel_unshuffle(self, factor));
}

template <int64_t dims>
Tensor unpool(const Tensor& self, const Tensor& indices, at::IntArrayRef size) {
  TORCH_CHECK(self.sizes() == indices.sizes() && size.size() == static_cast<size_t>(dims),
              "max_unpool: input of size ", self.sizes(), ", indices of size ", indices.sizes(),
              " and ", size.size(), " output sizes do not fit together");
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got ", indices.scalar_type());
  const int64_t first = self.dim() - dims;
  std::vector<int64_t> sizes = self.sizes().slice(0, first).vec();
  sizes.insert(sizes.end(), size.begin(), size.end());
  const Tensor empty = at::zeros(sizes, self.options());
  if (self.numel() == 0) return empty;
  const Tensor result =
      empty.flatten(first).scatter(first, indices.flatten(first), self.flatten(first)).view(sizes);
  return dims == 2 ? in_format_of(self, result) : result;
}

Tensor unpool2d(const Tensor& self, const Tensor& indices, c10::SymIntArrayRef size) {
  return unpool<2>(self, indices, C10_AS_INTARRAYREF_SLOW(size));
}

Tensor unpool3d(const Tensor& self, const Tensor& indices, c10::SymIntArrayRef size,
                at::IntArrayRef, at::IntArrayRef) {
  return unpool<3>(self, indices, C10_AS_INTARRAYREF_SLOW(size));
}

Two prelu_backward(const Tensor& grad, const Tensor& self, const Tensor& weight) {
  const Tensor positive = self.gt(0);
  return {at::where(positive, grad, weight * grad), at::where(positive, 0, self * grad)};
}

// In training every negative element draws its own slope, which `noise` keeps.
Tensor rrelu(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
             bool training, std::optional<at::Generator> generator) {
  if (!training) return at::leaky_relu(self, (lower.toDouble() + upper.toDouble()) / 2);
  at::native::resize_output(noise, self.sizes());
  noise.uniform_(lower.toDouble(), upper.toDouble(), std::move(generator))
      .masked_fill_(self.gt(0), 1);
  return self * noise;
}
Tensor& rrelu_out(const Tensor& self, Tensor& noise, const at::Scalar& lower,
                  const at::Scalar& upper, bool training, std::optional<at::Generator> generator,
                  Tensor& out) {
  return deliver(out, rrelu(self, noise, lower, upper, training, std::move(generator)));
}
Tensor& rrelu_(Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
               bool training, std::optional<at::Generator> generator) {
  return self.copy_(rrelu(self, noise, lower, upper, training, std::move(generator)));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_prelu_kernel_backward", TORCH_FN(prelu_backward));
  m.impl("rrelu_with_noise", TORCH_FN(rrelu));
  m.impl("rrelu_with_noise_", TORCH_FN(rrelu_));
  m.impl("rrelu_with_noise.out", TORCH_FN(rrelu_out));
  m.impl("_weight_norm_interface", TORCH_FN(weight_norm));
  m.impl("_weight_norm_interface_backward", TORCH_FN(weight_norm_backward));
  m.impl("channel_shuffle", TORCH_FN(shuffle_channels));
  m.impl("pixel_shuffle", TORCH_FN(shuffle_pixels));
  m.impl("pixel_unshuffle", TORCH_FN(unshuffle_pixels));
  m.impl("max_unpool2d", TORCH_FN(unpool2d));
  register_out<unpool2d>(m, "max_unpool2d.out");
  m.impl("max_unpool3d", TORCH_FN(unpool3d));
  register_out<unpool3d>(m, "max_unpool3d.out");
}
// It has no derivative of its own: it is differentiated through the operators that it calls.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("channel_shuffle", TORCH_FN(shuffle_channels));
}

}  // namespace torch_ocl
