// Padding by reflection and replication, and sliding blocks as columns (im2col). Nothing is sent to
// the device: padding joins pieces of the tensor, and its gradient adds them where they came from.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;

// Along one dimension the padded tensor has an element for each place from -before to size + after:
// those before the tensor, those of the tensor (without what negative padding cuts off), and those
// after it.
struct Range {
  int64_t begin, end;
  int64_t length() const { return std::max<int64_t>(end - begin, 0); }
};
struct Pieces {
  int64_t size;
  Range before, within, after;
};
Pieces pieces_of(int64_t size, int64_t before, int64_t after) {
  const int64_t first = -before, last = size + after;
  return {size,
          {first, std::min<int64_t>(0, last)},
          {std::max<int64_t>(0, first), std::min(size, last)},
          {std::max(size, first), last}};
}

// What stands at places beyond an end: the elements mirrored at it, or the end itself.
Tensor beyond(const Tensor& self, int64_t dim, const Pieces& p, const Range& places,
              bool reflects) {
  const bool is_before = places.begin < 0;
  if (!reflects) {
    std::vector<int64_t> sizes = self.sizes().vec();
    sizes[static_cast<size_t>(dim)] = places.length();
    return self.narrow(dim, is_before ? 0 : p.size - 1, 1).expand(sizes);
  }
  const int64_t first = (is_before ? 0 : 2 * (p.size - 1)) - (places.end - 1);
  return self.narrow(dim, first, places.length()).flip(dim);
}

Tensor padded_along(const Tensor& self, int64_t dim, const Pieces& p, bool reflects) {
  std::vector<Tensor> parts;
  if (p.before.length() > 0) parts.push_back(beyond(self, dim, p, p.before, reflects));
  if (p.within.length() > 0) parts.push_back(self.narrow(dim, p.within.begin, p.within.length()));
  if (p.after.length() > 0) parts.push_back(beyond(self, dim, p, p.after, reflects));
  return parts.size() == 1 ? parts[0] : at::cat(parts, dim);
}

// The gradient at places beyond an end is added where the elements came from.
void add_beyond(const Tensor& result, const Tensor& grad, int64_t dim, const Pieces& p,
                const Range& places, bool reflects) {
  if (places.length() == 0) return;
  const bool is_before = places.begin < 0;
  const Tensor part = grad.narrow(dim, places.begin - p.before.begin, places.length());
  if (!reflects) {
    result.narrow(dim, is_before ? 0 : p.size - 1, 1).add_(part.sum(dim, true));
    return;
  }
  const int64_t first = (is_before ? 0 : 2 * (p.size - 1)) - (places.end - 1);
  result.narrow(dim, first, places.length()).add_(part.flip(dim));
}

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

template <int64_t dims, bool reflects>
Tensor pad(const Tensor& self, c10::SymIntArrayRef symbolic) {
  const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(symbolic);
  check(self, padding, dims, reflects);
  Tensor result = self;
  for (int64_t k = 0; k < dims; ++k) {
    if (padding[2 * k] == 0 && padding[2 * k + 1] == 0) continue;
    const int64_t dim = self.dim() - 1 - k;
    const Pieces p = pieces_of(self.size(dim), padding[2 * k], padding[2 * k + 1]);
    result = padded_along(result, dim, p, reflects);
  }
  if (result.is_alias_of(self)) result = result.clone(at::MemoryFormat::Contiguous);
  return dims == 2 ? in_format_of(self, result) : result;
}

template <int64_t dims, bool reflects>
Tensor pad_backward(const Tensor& grad, const Tensor& self, c10::SymIntArrayRef symbolic) {
  const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(symbolic);
  check(self, padding, dims, reflects);
  Tensor result = grad;
  for (int64_t k = 0; k < dims; ++k) {
    const int64_t dim = self.dim() - 1 - k, before = padding[2 * k], after = padding[2 * k + 1];
    const int64_t size = self.size(dim);
    TORCH_CHECK(grad.size(dim) == size + before + after, "grad_output has size ", grad.sizes(),
                ", which is not that of input ", self.sizes(), " padded by ", padding);
    if (before == 0 && after == 0) continue;
    const Pieces p = pieces_of(size, before, after);
    std::vector<int64_t> sizes = result.sizes().vec();
    sizes[static_cast<size_t>(dim)] = size;
    const bool is_whole = p.within.length() == size;
    const Tensor sum =
        is_whole ? at::empty(sizes, grad.options()) : at::zeros(sizes, grad.options());
    if (p.within.length() > 0)
      sum.narrow(dim, p.within.begin, p.within.length())
          .copy_(result.narrow(dim, p.within.begin + before, p.within.length()));
    add_beyond(sum, result, dim, p, p.before, reflects);
    add_beyond(sum, result, dim, p, p.after, reflects);
    result = sum;
  }
  if (result.is_same(grad)) result = grad.clone();
  return dims == 2 ? in_format_of(self, result) : result;
}

constexpr auto& reflection_pad1d = pad<1, true>;
constexpr auto& reflection_pad2d = pad<2, true>;
constexpr auto& reflection_pad3d = pad<3, true>;
constexpr auto& replication_pad1d = pad<1, false>;
constexpr auto& replication_pad2d = pad<2, false>;
constexpr auto& replication_pad3d = pad<3, false>;
constexpr auto& reflection_pad1d_back = pad_backward<1, true>;
constexpr auto& reflection_pad2d_back = pad_backward<2, true>;
constexpr auto& reflection_pad3d_back = pad_backward<3, true>;
constexpr auto& replication_pad1d_back = pad_backward<1, false>;
constexpr auto& replication_pad2d_back = pad_backward<2, false>;
constexpr auto& replication_pad3d_back = pad_backward<3, false>;

// One dimension of im2col: taps of a block that are `dilation` apart, blocks that are `stride`
// apart, in the padded input.
struct Taps {
  int64_t kernel, dilation, blocks, stride, padded;
};

Taps taps(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
  TORCH_CHECK(kernel > 0 && dilation > 0 && stride > 0 && padding >= 0,
              "kernel, dilation and stride should be greater than zero and padding not negative");
  const int64_t padded = size + 2 * padding;
  const int64_t room = padded - (dilation * (kernel - 1) + 1);
  TORCH_CHECK(room >= 0, "a sliding block of ", kernel, " by dilation ", dilation,
              " does not fit into ", padded, " elements");
  return {kernel, dilation, room / stride + 1, stride, padded};
}

// The place of each tap of each block, tap-major, made on the device of `like`.
Tensor places(const Taps& t, const Tensor& like) {
  const auto numbers = like.options().dtype(at::kLong);
  const Tensor tap = at::arange(0, t.kernel * t.dilation, t.dilation, numbers);
  const Tensor block = at::arange(0, t.blocks * t.stride, t.stride, numbers);
  return tap.unsqueeze(1).add(block).reshape({-1});
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
      at::constant_pad_nd(self, {padding[1], padding[1], padding[0], padding[0]}, 0).contiguous();
  const int64_t n = self.size(0), c = self.size(1);
  const at::IntArrayRef step = padded.strides();
  return padded
      .as_strided({n, c, h.kernel, w.kernel, h.blocks, w.blocks},
                  {step[0], step[1], h.dilation * step[2], w.dilation * step[3], h.stride * step[2],
                   w.stride * step[3]})
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
                          .index_add(3, places(w, self), blocks);
  return at::zeros({n, c, h.padded, w.padded}, self.options())
      .index_add(2, places(h, self), rows)
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
