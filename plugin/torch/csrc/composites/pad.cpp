// Padding by reflection and replication, and sliding blocks as columns (im2col). Forward selects
// along each dimension, backward adds to the selected places.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Indices = std::vector<int64_t>;

Indices reflected(int64_t size, int64_t before, int64_t after) {
  Indices places;
  for (int64_t i = -before; i < size + after; ++i)
    places.push_back(i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i);
  return places;
}

Indices replicated(int64_t size, int64_t before, int64_t after) {
  Indices places;
  for (int64_t i = -before; i < size + after; ++i)
    places.push_back(std::clamp<int64_t>(i, 0, size - 1));
  return places;
}

using Places = Indices (*)(int64_t size, int64_t before, int64_t after);

// ATen's checks, for the forms whose checks ATen leaves to the kernel; the last `dims` dimensions
// are padded.
void check(const Tensor& self, at::IntArrayRef padding, int64_t dims, bool reflects) {
  TORCH_CHECK(padding.size() == static_cast<size_t>(2 * dims), "padding size is expected to be ",
              2 * dims);
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "Expected ", dims + 1, "D or ",
              dims + 2, "D (batch mode) tensor for input, but got: ", self.sizes());
  for (int64_t k = 0; k < dims; ++k) {
    const int64_t size = self.size(-1 - k), before = padding[2 * k], after = padding[2 * k + 1];
    TORCH_CHECK(!reflects || (before < size && after < size),
                "Padding size should be less than the corresponding input dimension, but got: "
                "padding (",
                before, ", ", after, ") at dimension ", self.dim() - 1 - k, " of input ",
                self.sizes());
    TORCH_CHECK(size + before + after >= 1 && size > 0, "input of size ", self.sizes(),
                " is too small for padding ", padding);
  }
}

template <int64_t dims, auto& places, bool reflects>
Tensor pad(const Tensor& self, c10::SymIntArrayRef symbolic) {
  const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(symbolic);
  check(self, padding, dims, reflects);
  Tensor result = self;
  for (int64_t k = 0; k < dims; ++k) {
    if (padding[2 * k] == 0 && padding[2 * k + 1] == 0) continue;
    const Indices at = places(self.size(-1 - k), padding[2 * k], padding[2 * k + 1]);
    result = result.index_select(-1 - k, upload(at, self));
  }
  if (result.is_same(self)) return self.clone();
  return dims == 2 ? in_format_of(self, result) : result;
}

template <int64_t dims, auto& places, bool reflects>
Tensor pad_backward(const Tensor& grad, const Tensor& self, c10::SymIntArrayRef symbolic) {
  const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(symbolic);
  check(self, padding, dims, reflects);
  Tensor result = grad;
  for (int64_t k = 0; k < dims; ++k) {
    const int64_t size = self.size(-1 - k);
    TORCH_CHECK(grad.size(-1 - k) == size + padding[2 * k] + padding[2 * k + 1],
                "grad_output has size ", grad.sizes(), ", which is not that of input ",
                self.sizes(), " padded by ", padding);
    if (padding[2 * k] == 0 && padding[2 * k + 1] == 0) continue;
    const Indices at = places(size, padding[2 * k], padding[2 * k + 1]);
    std::vector<int64_t> sizes = result.sizes().vec();
    sizes[sizes.size() - 1 - k] = size;
    result = at::zeros(sizes, grad.options()).index_add(-1 - k, upload(at, self), result);
  }
  if (result.is_same(grad)) result = grad.clone();
  return dims == 2 ? in_format_of(self, result) : result;
}

constexpr auto& reflection_pad1d = pad<1, reflected, true>;
constexpr auto& reflection_pad2d = pad<2, reflected, true>;
constexpr auto& reflection_pad3d = pad<3, reflected, true>;
constexpr auto& replication_pad1d = pad<1, replicated, false>;
constexpr auto& replication_pad2d = pad<2, replicated, false>;
constexpr auto& replication_pad3d = pad<3, replicated, false>;
constexpr auto& reflection_pad1d_back = pad_backward<1, reflected, true>;
constexpr auto& reflection_pad2d_back = pad_backward<2, reflected, true>;
constexpr auto& reflection_pad3d_back = pad_backward<3, reflected, true>;
constexpr auto& replication_pad1d_back = pad_backward<1, replicated, false>;
constexpr auto& replication_pad2d_back = pad_backward<2, replicated, false>;
constexpr auto& replication_pad3d_back = pad_backward<3, replicated, false>;

// One dimension of im2col: the place of each tap of each block in the padded input, tap-major.
struct Taps {
  Indices places;
  int64_t kernel, blocks, padded;
};

Taps taps(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
  TORCH_CHECK(kernel > 0 && dilation > 0 && stride > 0 && padding >= 0,
              "kernel, dilation and stride should be greater than zero and padding not negative");
  const int64_t padded = size + 2 * padding;
  const int64_t room = padded - (dilation * (kernel - 1) + 1);
  TORCH_CHECK(room >= 0, "a sliding block of ", kernel, " by dilation ", dilation,
              " does not fit into ", padded, " elements");
  Taps result{{}, kernel, room / stride + 1, padded};
  for (int64_t k = 0; k < kernel; ++k)
    for (int64_t b = 0; b < result.blocks; ++b) result.places.push_back(k * dilation + b * stride);
  return result;
}

Tensor im2col(const Tensor& self, at::IntArrayRef kernel, at::IntArrayRef dilation,
              at::IntArrayRef padding, at::IntArrayRef stride) {
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
              "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
              "dimensions for input, but got: ",
              self.sizes());
  if (self.dim() == 3)
    return at::im2col(self.unsqueeze(0), kernel, dilation, padding, stride).squeeze(0);
  const Taps h = taps(self.size(2), kernel[0], dilation[0], padding[0], stride[0]);
  const Taps w = taps(self.size(3), kernel[1], dilation[1], padding[1], stride[1]);
  const Tensor padded =
      at::constant_pad_nd(self, {padding[1], padding[1], padding[0], padding[0]}, 0);
  const int64_t n = self.size(0), c = self.size(1);
  return padded.index_select(2, upload(h.places, self))
      .index_select(3, upload(w.places, self))
      .view({n, c, h.kernel, h.blocks, w.kernel, w.blocks})
      .transpose(3, 4)
      .reshape({n, c * h.kernel * w.kernel, h.blocks * w.blocks});
}

Tensor col2im(const Tensor& self, c10::SymIntArrayRef output_size, at::IntArrayRef kernel,
              at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride) {
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3,
              "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
              "non-zero dimensions for input, but got: ",
              self.sizes());
  if (self.dim() == 2)
    return at::col2im_symint(self.unsqueeze(0), output_size, kernel, dilation, padding, stride)
        .squeeze(0);
  const at::IntArrayRef size = C10_AS_INTARRAYREF_SLOW(output_size);
  const Taps h = taps(size[0], kernel[0], dilation[0], padding[0], stride[0]);
  const Taps w = taps(size[1], kernel[1], dilation[1], padding[1], stride[1]);
  TORCH_CHECK(self.size(1) % (h.kernel * w.kernel) == 0 && self.size(2) == h.blocks * w.blocks,
              "Given output_size ", size, " and kernel_size ", kernel, ", input ", self.sizes(),
              " should have ", h.blocks * w.blocks, " columns of a multiple of ",
              h.kernel * w.kernel, " elements");
  const int64_t n = self.size(0), c = self.size(1) / (h.kernel * w.kernel);
  const Tensor blocks = self.reshape({n, c, h.kernel, w.kernel, h.blocks, w.blocks})
                            .transpose(3, 4)
                            .reshape({n, c, h.kernel * h.blocks, w.kernel * w.blocks});
  const Tensor rows = at::zeros({n, c, blocks.size(2), w.padded}, self.options())
                          .index_add(3, upload(w.places, self), blocks);
  return at::zeros({n, c, h.padded, w.padded}, self.options())
      .index_add(2, upload(h.places, self), rows)
      .narrow(2, padding[0], size[0])
      .narrow(3, padding[1], size[1])
      .contiguous();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#define OCL_PAD(name)                  \
  register_out<name>(m, #name ".out"); \
  register_out<name##_back>(m, #name "_backward.grad_input");
  OCL_PAD(reflection_pad1d)
  OCL_PAD(reflection_pad2d)
  OCL_PAD(reflection_pad3d)
  OCL_PAD(replication_pad1d)
  OCL_PAD(replication_pad2d)
  OCL_PAD(replication_pad3d)
#undef OCL_PAD
  // These forms are not structured, or have results of another layout than ATen would derive.
  m.impl("reflection_pad2d", TORCH_FN(reflection_pad2d));
  m.impl("replication_pad2d", TORCH_FN(replication_pad2d));
  m.impl("reflection_pad2d_backward", TORCH_FN(reflection_pad2d_back));
  m.impl("replication_pad2d_backward", TORCH_FN(replication_pad2d_back));
  m.impl("replication_pad3d_backward", TORCH_FN(replication_pad3d_back));
  m.impl("im2col", TORCH_FN(im2col));
  register_out<im2col>(m, "im2col.out");
  m.impl("col2im", TORCH_FN(col2im));
  register_out<col2im>(m, "col2im.out");
}

}  // namespace torch_ocl
