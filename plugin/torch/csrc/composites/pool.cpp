// Pooling in three dimensions, composed of pooling in two; adaptive and fractional maxima.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::IntArrayRef;
using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;
using Indices = std::vector<int64_t>;

// Expands a list of one number to three.
Indices three(IntArrayRef values, IntArrayRef otherwise = {}) {
  if (values.empty()) values = otherwise;
  return values.size() == 1 ? Indices(3, values[0]) : values.vec();
}

// Views of [..., D, H, W]: as a batch of planes H x W, and as a batch of planes D x (H * W).
Tensor planes(const Tensor& x) { return x.reshape({-1, 1, x.size(-2), x.size(-1)}); }
Tensor columns(const Tensor& x) { return x.reshape({-1, 1, x.size(-3), x.size(-2) * x.size(-1)}); }
Tensor as_volume(const Tensor& x, const Tensor& like, int64_t d, int64_t h, int64_t w) {
  Indices sizes = like.sizes().vec();
  const size_t n = sizes.size();
  sizes[n - 3] = d, sizes[n - 2] = h, sizes[n - 1] = w;
  return x.reshape(sizes);
}

// Results of a volume in channels_last_3d have that format; a tensor without a batch dimension
// cannot have it.
Tensor in_volume_format_of(const Tensor& self, const Tensor& result) {
  return self.dim() == 5 ? in_format_of(self, result) : result;
}

// Where the maxima are in volumes of `size`, from their places in planes (`flat`: [n * depth, 1,
// oh, ow]), and from the places of the greatest of these over depth (`best`: [n, 1, od, oh * ow]).
Tensor place_in_volume(const Tensor& flat, const Tensor& best, std::array<int64_t, 3> size) {
  const int64_t n = best.size(0), area = best.size(3), deep = best.size(2);
  const Tensor place = best.reshape({n, deep * area});
  const Tensor in_plane = flat.reshape({n, size[0] * area}).gather(1, place);
  return at::floor_divide(place, area) * (size[1] * size[2]) + in_plane;
}

Two max_pool3d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
               IntArrayRef dilation, bool ceil_mode) {
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "max_pool3d: Expected 4D or 5D tensor for input, but got ", self.sizes());
  for (int64_t dim = self.dim() - 4; dim < self.dim(); ++dim)
    TORCH_CHECK(self.size(dim) > 0,
                "max_pool3d: Expected input's non-batch dimensions to have positive length, but "
                "input has a shape of ",
                self.sizes());
  const Indices k = three(kernel), s = three(stride, kernel), p = three(padding),
                l = three(dilation);
  const int64_t d = self.size(-3), h = self.size(-2), w = self.size(-1);
  auto [flat, flat_at] = at::max_pool2d_with_indices(planes(self), {k[1], k[2]}, {s[1], s[2]},
                                                     {p[1], p[2]}, {l[1], l[2]}, ceil_mode);
  const int64_t oh = flat.size(2), ow = flat.size(3);
  const Tensor stacked = columns(as_volume(flat, self, d, oh, ow));
  auto [best, best_at] =
      at::max_pool2d_with_indices(stacked, {k[0], 1}, {s[0], 1}, {p[0], 0}, {l[0], 1}, ceil_mode);
  const int64_t od = best.size(2);
  const Tensor place = place_in_volume(flat_at, best_at, {d, h, w});
  return {in_volume_format_of(self, as_volume(best, self, od, oh, ow)),
          in_volume_format_of(self, as_volume(place, self, od, oh, ow))};
}

// Adds gradients of maxima to the places that the indices name, in the last `dims` dimensions.
Tensor to_places(const Tensor& grad, const Tensor& self, const Tensor& indices, int64_t dims) {
  TORCH_CHECK(grad.sizes() == indices.sizes(), "expected grad_output of size ", indices.sizes(),
              ", got ", grad.sizes());
  const int64_t first = self.dim() - dims;
  if (self.numel() == 0) return at::zeros_like(self);
  return at::zeros(self.sizes(), grad.options())
      .flatten(first)
      .scatter_add(first, indices.flatten(first), grad.flatten(first))
      .view(self.sizes());
}

Tensor max_pool3d_back(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef,
                       IntArrayRef, IntArrayRef, bool, const Tensor& indices) {
  return in_volume_format_of(self, to_places(grad, self, indices, 3));
}

// An average over a volume is that over planes, and over depth of these. What a window counts is
// the product of what it counts along each dimension, so each step divides by its own. Integers,
// and sums with a given divisor, are divided once.
struct Average {
  Indices k, s, p;
  bool ceil_mode, with_padding;
  std::optional<int64_t> of_planes, of_depth;  // divisors
};

Average average_of(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                   bool ceil_mode, bool with_padding, std::optional<int64_t> given) {
  Average a{three(kernel), three(stride, kernel), three(padding), ceil_mode, with_padding, {}, {}};
  const bool once = given.has_value() || !self.is_floating_point();
  if (once) a.of_planes = 1, a.of_depth = given.value_or(1);
  return a;
}

// By how many elements average pooling divides each window of one dimension.
Tensor counts(const Average& a, size_t dim, int64_t size, int64_t out, const Tensor& like) {
  const int64_t padding = a.p[dim];
  const Tensor start =
      at::arange(out, like.options().dtype(at::kLong)).mul_(a.s[dim]).sub_(padding);
  const Tensor end = start.add(a.k[dim]).clamp_max_(size + padding);
  return a.with_padding ? end.sub_(start) : end.clamp_max_(size).sub_(start.clamp_min_(0));
}

// Steps are put together in float: in 16 bits sums overflow, and each step rounds again.
bool is_short(const Tensor& x) {
  return x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
}

Tensor avg_pool3d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  bool ceil_mode, bool with_padding, std::optional<int64_t> given) {
  if (is_short(self))
    return at::avg_pool3d(self.to(at::kFloat), kernel, stride, padding, ceil_mode, with_padding,
                          given)
        .to(self.scalar_type());
  const Average a = average_of(self, kernel, stride, padding, ceil_mode, with_padding, given);
  const Tensor flat = at::avg_pool2d(planes(self), {a.k[1], a.k[2]}, {a.s[1], a.s[2]},
                                     {a.p[1], a.p[2]}, ceil_mode, with_padding, a.of_planes);
  const int64_t d = self.size(-3), oh = flat.size(2), ow = flat.size(3);
  const Tensor stacked = columns(as_volume(flat, self, d, oh, ow));
  const Tensor sums = at::avg_pool2d(stacked, {a.k[0], 1}, {a.s[0], 1}, {a.p[0], 0}, ceil_mode,
                                     with_padding, a.of_depth);
  const int64_t od = sums.size(2);
  const Tensor whole = as_volume(sums, self, od, oh, ow);
  if (self.is_floating_point() || given.has_value()) return whole;
  const Tensor counted = counts(a, 0, d, od, self).view({-1, 1, 1}) *
                         counts(a, 1, self.size(-2), oh, self).view({-1, 1}) *
                         counts(a, 2, self.size(-1), ow, self);
  return whole.div(counted, "trunc");
}

Tensor avg_pool3d_back(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool with_padding,
                       std::optional<int64_t> given) {
  if (is_short(self))
    return avg_pool3d_back(grad.to(at::kFloat), self.to(at::kFloat), kernel, stride, padding,
                           ceil_mode, with_padding, given)
        .to(self.scalar_type());
  const Average a = average_of(self, kernel, stride, padding, ceil_mode, with_padding, given);
  const int64_t d = self.size(-3), oh = grad.size(-2), ow = grad.size(-1);
  const Tensor middle = at::empty({columns(grad).size(0), 1, d, oh * ow}, self.options());
  const Tensor flat = at::avg_pool2d_backward(columns(grad), middle, {a.k[0], 1}, {a.s[0], 1},
                                              {a.p[0], 0}, ceil_mode, with_padding, a.of_depth);
  return at::avg_pool2d_backward(planes(as_volume(flat, self, d, oh, ow)), planes(self),
                                 {a.k[1], a.k[2]}, {a.s[1], a.s[2]}, {a.p[1], a.p[2]}, ceil_mode,
                                 with_padding, a.of_planes)
      .view(self.sizes());
}

Tensor adaptive_avg_pool3d(const Tensor& self, c10::SymIntArrayRef symbolic) {
  const IntArrayRef size = C10_AS_INTARRAYREF_SLOW(symbolic);
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "adaptive_avg_pool3d(): Expected 4D or 5D tensor, but got ", self.sizes());
  if (is_short(self))
    return at::_adaptive_avg_pool3d(self.to(at::kFloat), size).to(self.scalar_type());
  const int64_t d = self.size(-3);
  const Tensor flat = at::_adaptive_avg_pool2d(planes(self), {size[1], size[2]});
  const Tensor stacked = columns(as_volume(flat, self, d, size[1], size[2]));
  return as_volume(at::_adaptive_avg_pool2d(stacked, {size[0], size[1] * size[2]}), self, size[0],
                   size[1], size[2]);
}

Tensor adaptive_avg_pool3d_back(const Tensor& grad, const Tensor& self) {
  if (is_short(self))
    return adaptive_avg_pool3d_back(grad.to(at::kFloat), self.to(at::kFloat))
        .to(self.scalar_type());
  const int64_t d = self.size(-3), oh = grad.size(-2), ow = grad.size(-1);
  const Tensor middle = at::empty({columns(grad).size(0), 1, d, oh * ow}, self.options());
  const Tensor flat = at::_adaptive_avg_pool2d_backward(columns(grad), middle);
  return at::_adaptive_avg_pool2d_backward(planes(as_volume(flat, self, d, oh, ow)), planes(self))
      .view(self.sizes());
}

// Maxima of planes, and over depth of these, as max_pool3d.
Two adaptive_max_pool3d(const Tensor& self, IntArrayRef size) {
  const int64_t d = self.size(-3), h = self.size(-2), w = self.size(-1);
  const auto [flat, flat_at] = at::adaptive_max_pool2d(planes(self), {size[1], size[2]});
  const Tensor stacked = columns(as_volume(flat, self, d, size[1], size[2]));
  const auto [best, best_at] = at::adaptive_max_pool2d(stacked, {size[0], size[1] * size[2]});
  return {as_volume(best, self, size[0], size[1], size[2]),
          as_volume(place_in_volume(flat_at, best_at, {d, h, w}), self, size[0], size[1], size[2])};
}

template <int64_t dims>
Tensor adaptive_max_pool_back(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return to_places(grad, self, indices, dims);
}

template <int64_t dims>
Tensor fractional_max_pool_back(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef,
                                const Tensor& indices) {
  return to_places(grad, self, indices, dims);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("max_pool3d_with_indices", TORCH_FN(max_pool3d));
  register_out<max_pool3d>(m, "max_pool3d_with_indices.out");
  m.impl("max_pool3d_with_indices_backward", TORCH_FN(max_pool3d_back));
  register_out<max_pool3d_back>(m, "max_pool3d_with_indices_backward.grad_input");
  register_out<avg_pool3d>(m, "avg_pool3d.out");
  register_out<avg_pool3d_back>(m, "avg_pool3d_backward.grad_input");
  m.impl("_adaptive_avg_pool3d", TORCH_FN(adaptive_avg_pool3d));
  register_out<adaptive_avg_pool3d>(m, "adaptive_avg_pool3d.out");
  m.impl("_adaptive_avg_pool3d_backward", TORCH_FN(adaptive_avg_pool3d_back));
  register_out<adaptive_max_pool3d>(m, "adaptive_max_pool3d.out");
  m.impl("fractional_max_pool2d_backward", TORCH_FN(fractional_max_pool_back<2>));
  register_out<fractional_max_pool_back<2>>(m, "fractional_max_pool2d_backward.grad_input");
  m.impl("fractional_max_pool3d_backward", TORCH_FN(fractional_max_pool_back<3>));
  register_out<fractional_max_pool_back<3>>(m, "fractional_max_pool3d_backward.grad_input");
  register_out<adaptive_max_pool_back<2>>(m, "adaptive_max_pool2d_backward.grad_input");
  register_out<adaptive_max_pool_back<3>>(m, "adaptive_max_pool3d_backward.grad_input");
}

}  // namespace torch_ocl
