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
  const int64_t od = best.size(2), n = best.size(0);
  const Tensor place = best_at.reshape({n, od * oh * ow});
  const Tensor in_plane = flat_at.reshape({n, d * oh * ow}).gather(1, place);
  const Tensor depth = at::floor_divide(place, oh * ow);
  return {in_volume_format_of(self, as_volume(best, self, od, oh, ow)),
          in_volume_format_of(self, as_volume(depth * (h * w) + in_plane, self, od, oh, ow))};
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

// By how many elements ATen's average pooling divides each window of one dimension.
Indices counts(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
               bool with_padding) {
  Indices result;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t start = i * stride - padding;
    const int64_t end = std::min(start + kernel, size + padding);
    result.push_back(with_padding ? end - start
                                  : std::min(end, size) - std::max<int64_t>(start, 0));
  }
  return result;
}

struct Average {
  Indices k, s, p;
  bool ceil_mode;
};

Tensor divisor(const Average& a, const Tensor& self, IntArrayRef out, bool with_padding,
               std::optional<int64_t> given) {
  if (given.has_value()) return at::full({1, 1, 1}, static_cast<double>(*given), self.options());
  const Indices d = counts(self.size(-3), out[0], a.k[0], a.s[0], a.p[0], with_padding);
  const Indices h = counts(self.size(-2), out[1], a.k[1], a.s[1], a.p[1], with_padding);
  const Indices w = counts(self.size(-1), out[2], a.k[2], a.s[2], a.p[2], with_padding);
  const Tensor product =
      at::tensor(d).view({-1, 1, 1}) * at::tensor(h).view({-1, 1}) * at::tensor(w);
  return product.to(self.scalar_type()).to(self.device());
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
  const Average a{three(kernel), three(stride, kernel), three(padding), ceil_mode};
  const Tensor flat = at::avg_pool2d(planes(self), {a.k[1], a.k[2]}, {a.s[1], a.s[2]},
                                     {a.p[1], a.p[2]}, ceil_mode, true, 1);
  const int64_t oh = flat.size(2), ow = flat.size(3);
  const Tensor stacked = columns(as_volume(flat, self, self.size(-3), oh, ow));
  const Tensor sums =
      at::avg_pool2d(stacked, {a.k[0], 1}, {a.s[0], 1}, {a.p[0], 0}, ceil_mode, true, 1);
  const int64_t od = sums.size(2);
  const Tensor counted = divisor(a, self, {od, oh, ow}, with_padding, given);
  const Tensor whole = as_volume(sums, self, od, oh, ow);
  return self.is_floating_point() ? whole / counted : whole.div(counted, "trunc");
}

Tensor avg_pool3d_back(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool with_padding,
                       std::optional<int64_t> given) {
  if (is_short(self))
    return avg_pool3d_back(grad.to(at::kFloat), self.to(at::kFloat), kernel, stride, padding,
                           ceil_mode, with_padding, given)
        .to(self.scalar_type());
  const Average a{three(kernel), three(stride, kernel), three(padding), ceil_mode};
  const int64_t d = self.size(-3), oh = grad.size(-2), ow = grad.size(-1);
  const Tensor sums =
      grad / divisor(a, self, grad.sizes().slice(grad.dim() - 3), with_padding, given);
  const Tensor middle = at::empty({columns(sums).size(0), 1, d, oh * ow}, self.options());
  const Tensor flat = at::avg_pool2d_backward(columns(sums), middle, {a.k[0], 1}, {a.s[0], 1},
                                              {a.p[0], 0}, ceil_mode, true, 1);
  return at::avg_pool2d_backward(planes(as_volume(flat, self, d, oh, ow)), planes(self),
                                 {a.k[1], a.k[2]}, {a.s[1], a.s[2]}, {a.p[1], a.p[2]}, ceil_mode,
                                 true, 1)
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

// Maxima along one dimension in adaptive windows. `places` are the flat indices of the values, and
// are selected with them.
void adaptive_max_along(Tensor& values, Tensor& places, int64_t dim, int64_t out) {
  const int64_t in = values.size(dim);
  int64_t widest = 1;
  const auto start = [&](int64_t i) { return i * in / out; };
  const auto end = [&](int64_t i) { return ((i + 1) * in + out - 1) / out; };
  for (int64_t i = 0; i < out; ++i) widest = std::max(widest, end(i) - start(i));
  Indices selected;  // shorter windows repeat their last element
  for (int64_t i = 0; i < out; ++i)
    for (int64_t k = 0; k < widest; ++k) selected.push_back(std::min(start(i) + k, end(i) - 1));
  const Tensor index = upload(selected, values);
  auto [best, at] =
      values.index_select(dim, index).unflatten(dim, {out, widest}).max(dim + 1, true);
  places = places.index_select(dim, index)
               .unflatten(dim, {out, widest})
               .gather(dim + 1, at)
               .squeeze(dim + 1);
  values = best.squeeze(dim + 1);
}

Two adaptive_max_pool(const Tensor& self, IntArrayRef size) {
  const auto dims = static_cast<int64_t>(size.size());
  const int64_t first = self.dim() - dims;
  Tensor values = self;
  Tensor places =
      at::arange(c10::multiply_integers(self.sizes().slice(first)), self.options().dtype(at::kLong))
          .view(self.sizes().slice(first))
          .expand(self.sizes());
  for (int64_t d = dims - 1; d >= 0; --d) adaptive_max_along(values, places, first + d, size[d]);
  return {values, places};
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
  register_out<adaptive_max_pool>(m, "adaptive_max_pool2d.out");
  register_out<adaptive_max_pool>(m, "adaptive_max_pool3d.out");
  m.impl("fractional_max_pool2d_backward", TORCH_FN(fractional_max_pool_back<2>));
  register_out<fractional_max_pool_back<2>>(m, "fractional_max_pool2d_backward.grad_input");
  m.impl("fractional_max_pool3d_backward", TORCH_FN(fractional_max_pool_back<3>));
  register_out<fractional_max_pool_back<3>>(m, "fractional_max_pool3d_backward.grad_input");
  register_out<adaptive_max_pool_back<2>>(m, "adaptive_max_pool2d_backward.grad_input");
  register_out<adaptive_max_pool_back<3>>(m, "adaptive_max_pool3d_backward.grad_input");
}

}  // namespace torch_ocl
