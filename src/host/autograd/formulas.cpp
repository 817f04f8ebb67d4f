// Formulas of derivatives that take more than a line.
#include "formulas.h"

#include <cmath>
#include <complex>

namespace ocltensor::detail {
namespace {

Options like(const Tensor& t) { return {t.dtype(), t.device()}; }

// The dimensions as a list without negative ones; all of them for none.
std::vector<int64_t> reduced_dims(const Dims& sizes, const IntList& dims) {
  const auto rank = static_cast<int64_t>(sizes.size());
  std::vector<int64_t> found;
  if (dims.is_none() || dims.span().empty())
    for (int64_t d = 0; d < rank; ++d) found.push_back(d);
  else
    for (const int64_t d : dims.span()) found.push_back(wrap_dim(d, rank));
  return found;
}

// The part of `t` that an index of this shape reads from.
Tensor corner(Tensor t, const Dims& sizes) {
  for (int64_t d = 0; d < t.dim(); ++d) t = t.narrow(d, 0, sizes[static_cast<size_t>(d)]);
  return t;
}

}  // namespace

Tensor times(const Tensor& grad, const Scalar& number) {
  return number.as_complex() == 1.0 ? grad : grad * number;
}

Tensor conj(const Tensor& t) { return is_complex(t.dtype()) ? conj_physical(t) : t; }
Scalar conj(const Scalar& number) {
  return number.is_complex() ? Scalar(std::conj(number.as_complex())) : number;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

Tensor expand_reduced(const Tensor& grad, const Dims& sizes, const IntList& dims, bool keepdim) {
  if (keepdim || sizes.empty()) return grad.expand(sizes);
  Dims raised = sizes;
  for (const int64_t d : reduced_dims(sizes, dims)) raised[static_cast<size_t>(d)] = 1;
  return grad.reshape(raised).expand(sizes);
}

double reduced_count(const Dims& sizes, const IntList& dims) {
  double count = 1;
  if (!sizes.empty())
    for (const int64_t d : reduced_dims(sizes, dims))
      count *= static_cast<double>(sizes[static_cast<size_t>(d)]);
  return count;
}

Tensor share_among_ties(const Tensor& grad, const Tensor& self, const Tensor& result,
                        const IntList& dims, bool keepdim) {
  const Tensor chosen =
      (self == expand_reduced(result, self.sizes(), dims, keepdim)).to(grad.dtype());
  if (self.dim() == 0) return chosen * grad;
  const std::vector<int64_t> reduced = reduced_dims(self.sizes(), dims);
  return chosen / chosen.sum(reduced, true) * expand_reduced(grad, self.sizes(), dims, keepdim);
}

Tensor selected(const Tensor& grad, const Tensor& positions, const Dims& sizes, int64_t dim,
                bool keepdim) {
  if (sizes.empty()) return grad;
  return gathered(keepdim ? grad : grad.unsqueeze(dim), sizes, dim,
                  keepdim ? positions : positions.unsqueeze(dim));
}

// Products of what comes before and of what comes after, so that zeros divide nothing.
Tensor product_of_others(const Tensor& self, int64_t dim) {
  if (self.dim() == 0 || self.size(dim) <= 1) return ones_like(self);
  const int64_t n = self.size(dim);
  const Tensor one = ones_like(self.narrow(dim, 0, 1));
  const Tensor before = cat({one, self.narrow(dim, 0, n - 1).cumprod(dim)}, dim);
  const Tensor after = cat({self.narrow(dim, 1, n - 1).flip(dim).cumprod(dim).flip(dim), one}, dim);
  return before * after;
}

Tensor variance_slope(const Tensor& grad, const Tensor& self, const IntList& dims,
                      const std::optional<Scalar>& correction, bool keepdim) {
  const double count = reduced_count(self.sizes(), dims);
  const double degrees = count - (correction ? correction->as_double() : 1);
  const std::vector<int64_t> reduced = reduced_dims(self.sizes(), dims);
  const Tensor centred = self.dim() == 0 ? self - self : self - self.mean(reduced, true);
  return expand_reduced(grad, self.sizes(), dims, keepdim) * centred * (2 / degrees);
}

Tensor norm_slope(const Tensor& grad, const Tensor& self, const Tensor& result, double order,
                  const IntList& dims, bool keepdim) {
  const Tensor g = expand_reduced(grad, self.sizes(), dims, keepdim);
  if (order == 0) return zeros_like(self);
  if (order == 1) return g * self.sign();
  const Tensor norm = expand_reduced(result, self.sizes(), dims, keepdim);
  if (std::isinf(order)) {
    const Tensor chosen = (self.abs() == norm).to(self.dtype());
    const Tensor count =
        self.dim() == 0 ? chosen : chosen.sum(reduced_dims(self.sizes(), dims), true);
    return g * self.sign() * chosen / count;
  }
  const Tensor slope =
      order == 2 ? self / norm : self.sign() * self.abs().pow(order - 1) / norm.pow(order - 1);
  return g * where(norm == 0, 0, slope);
}

// d/dx_i = sum over j >= i of g_j exp(x_i - r_j): the positive and the negative gradients apart, as
// logarithms, so that nothing overflows.
Tensor log_scan_slope(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (self.dim() == 0) return grad;
  const auto scan = [&](const Tensor& magnitude) {
    const Tensor logs = (magnitude.log() - result).flip(dim).logcumsumexp(dim).flip(dim);
    return (logs + self).exp();
  };
  const Tensor zero = zeros_like(grad);
  return scan(maximum(grad, zero)) - scan(maximum(-grad, zero));
}

// The sum over j >= i of g_j times the product of the others up to j. Before the first zero that is
// the result divided by x_i, after it nothing; at the zero, the product with a one in its place.
Tensor product_scan_slope(const Tensor& grad, const Tensor& self, const Tensor& result,
                          int64_t dim) {
  if (self.dim() == 0) return grad;
  const auto from_here = [&](const Tensor& t) { return t.flip(dim).cumsum(dim).flip(dim); };
  const Tensor zero = self == 0;
  const Tensor first = zero & (zero.to(DType::Int64).cumsum(dim) == 1);
  const Tensor others = where(first, 1, self).cumprod(dim, grad.dtype());
  return where(first, from_here(grad * others), where(zero, 0, from_here(grad * result) / self));
}

Tensor sinc_slope(const Tensor& self) {
  const Tensor x = self * std::numbers::pi;
  return where(self == 0, 0, (x * x.cos() - x.sin()) / (x * self));
}

// d arg(x + iy) = (x dy - y dx) / |z|^2
Tensor angle_slope(const Tensor& grad, const Tensor& self) {
  if (!is_complex(self.dtype())) return zeros_like(grad);
  const Tensor size = self.abs();
  const Tensor matrix_transposed = self * Scalar(std::complex<double>(0, 1));
  return matrix_transposed * where(size == 0, 0, grad / (size * size));
}

Tensor in_corner(const Tensor& part, const Dims& sizes) {
  if (part.sizes() == sizes) return part;
  Tensor whole = zeros(sizes, like(part));
  corner(whole, part.sizes()).copy_(part);
  return whole;
}

// Of a transform from the half of a spectrum: the numbers that the other half repeats count twice.
Tensor half_transform_slope(const Tensor& grad, const IntList& dims, FftNorm norm) {
  const int64_t last = dims.span().back();
  Tensor spectrum = _fft_r2c(grad, dims, norm, true);
  const Tensor repeated = spectrum.narrow(last, 1, (grad.size(last) - 1) / 2);
  repeated.copy_(repeated * 2);
  return spectrum;
}

std::vector<Tensor> divided(const Tensor& grad, const std::vector<Dims>& sizes, int64_t dim) {
  std::vector<Tensor> gradients;
  int64_t first = 0;
  for (const Dims& s : sizes) {
    if (s.size() == 1 && s[0] == 0 && grad.dim() != 1) {  // ATen skips such tensors
      gradients.push_back(zeros(s, like(grad)));
      continue;
    }
    const int64_t size = s[static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(s.size())))];
    gradients.push_back(grad.narrow(dim, first, size));
    first += size;
  }
  return gradients;
}

Tensor rolled_back(const Tensor& grad, const IntList& shifts, const IntList& dims) {
  std::vector<int64_t> back;
  for (const int64_t s : shifts.span()) back.push_back(-s);
  return grad.roll(back, dims);
}

Tensor gathered(const Tensor& grad, const Dims& sizes, int64_t dim, const Tensor& index) {
  return zeros(sizes, like(grad)).scatter_add(dim, index, grad);
}

Tensor scatter_taken(const Tensor& grad, int64_t dim, const Tensor& index, const Dims& sizes) {
  return in_corner(grad.gather(dim, index), sizes);
}

Tensor scatter_by_mask(const Tensor& grad, const Dims& sizes, const Tensor& mask) {
  const Tensor positions = nonzero(mask.expand(broadcast(sizes, mask.sizes())));
  const Tensor gradient = zeros(broadcast(sizes, mask.sizes()), like(grad));
  std::vector<Tensor> indices;
  indices.reserve(gradient.sizes().size());
  for (int64_t d = 0; d < gradient.dim(); ++d) indices.push_back(positions.select(1, d));
  return indices.empty() ? grad.reshape({}) : gradient.index_put(indices, grad, true);
}

namespace {

// Of one factor of a product with so many zeros, and the product of those that are none.
Tensor factor_slope(const Tensor& factor, const Tensor& zeros, const Tensor& product) {
  return where(factor == 0, where(zeros == 1, product, 0), where(zeros == 0, product / factor, 0));
}

}  // namespace

std::tuple<Tensor, Tensor> reduced_slopes(const Tensor& grad, const Tensor& self, int64_t dim,
                                          const Tensor& index, const Tensor& src,
                                          std::string_view reduce, bool include_self,
                                          const Tensor& result) {
  const Tensor part = corner(src, index.sizes());
  const auto without = [&](const Tensor& t, double value) {
    return include_self ? t : t.scatter(dim, index, value);
  };
  Tensor self_grad = grad, part_grad;
  if (reduce == "sum") {
    part_grad = grad.gather(dim, index);
  } else if (reduce == "mean") {
    const Tensor count = without(ones_like(grad), 0).scatter_add(dim, index, ones_like(part));
    self_grad = grad / count.clamp_min(1);
    part_grad = self_grad.gather(dim, index);
  } else if (reduce == "prod") {
    const Tensor own = without(self, 1), zero = own == 0, part_zero = part == 0;
    const Tensor count = zero.to(grad.dtype()).scatter_add(dim, index, part_zero.to(grad.dtype()));
    const Tensor product =
        where(zero, 1, own).scatter_reduce(dim, index, where(part_zero, 1, part), "prod");
    self_grad = grad * factor_slope(own, count, product);
    part_grad = grad.gather(dim, index) *
                factor_slope(part, count.gather(dim, index), product.gather(dim, index));
  } else {  // equal parts for all that equal the extreme
    const Tensor own = without((self == result).to(grad.dtype()), 0);
    const Tensor chosen = (part == result.gather(dim, index)).to(grad.dtype());
    const Tensor share = grad / own.scatter_add(dim, index, chosen).clamp_min(1);
    self_grad = share * own;
    part_grad = share.gather(dim, index) * chosen;
  }
  return {without(self_grad, 0), in_corner(part_grad, src.sizes())};
}

Tensor unpooled(const Tensor& grad, const Tensor& positions, const Dims& sizes, size_t dims) {
  Dims planes(std::span<const int64_t>(sizes).first(sizes.size() - dims));
  const auto last = static_cast<int64_t>(planes.size());
  Dims flat = planes;
  flat.push_back(numel(std::span<const int64_t>(sizes).last(dims)));
  planes.push_back(-1);
  return gathered(grad.reshape(planes), flat, last, positions.reshape(planes)).view(sizes);
}

// Logarithms end at -100, as in the loss.
Tensor entropy_target_slope(const Tensor& grad, const Tensor& self, const OptionalTensor& weight,
                            Reduction reduction) {
  Tensor slope = (1 - self).log().clamp_min(-100) - self.log().clamp_min(-100);
  if (weight.tensor() != nullptr) slope = slope * *weight.tensor();
  if (reduction == Reduction::Mean) slope = slope / static_cast<double>(self.numel());
  return grad * slope;
}

// The sum over a row's listed classes t and its other classes c of max(0, 1 - x_t + x_c), divided
// by the number of classes. The list ends at the first -1.
Tensor listed_margin_slope(const Tensor& grad, const Tensor& self, const Tensor& target,
                           const Tensor& is_target, Reduction reduction) {
  const int64_t classes = self.dim() == 0 ? 1 : self.size(-1);
  const Tensor x = self.reshape({-1, classes}), listed = target.reshape({-1, classes});
  const Tensor places = listed.clamp_min(0);
  const Tensor excess = 1 - x.gather(1, places).unsqueeze(2) + x.unsqueeze(1);
  const Tensor others = (is_target.reshape({-1, classes}) == 0).unsqueeze(1);
  const Tensor in_list = (listed >= 0).to(x.dtype()).cumprod(1).unsqueeze(2);
  const Tensor active = ((excess > 0) & others).to(x.dtype()) * in_list;
  const Tensor slope = active.sum(1).scatter_add(1, places, -active.sum(2));
  const int64_t rows = reduction == Reduction::Mean ? x.size(0) : 1;
  return (slope * grad.reshape({-1, 1}) / static_cast<double>(rows * classes)).view(self.sizes());
}

Attention undropped(const char* name, const Tensor& query, const Tensor& key, const Tensor& value,
                    std::optional<double> scale, double dropout) {
  if (dropout > 0)
    fail(TB_UNSUPPORTED,
         "the derivative of {} with dropout is not known: use scaled_dot_product_attention()",
         name);
  const double factor =
      scale ? *scale : 1 / std::sqrt(std::max<double>(1, static_cast<double>(query.size(-1))));
  return {query, key, value, factor};
}

namespace {

// Key or value with a head for every query head, and the way back.
Tensor repeated(const Tensor& t, int64_t times) {
  if (times == 1) return t;
  Dims sizes = t.sizes(), result = t.sizes();
  sizes.insert(sizes.size() - 2, times);
  result[result.size() - 3] *= times;
  return t.unsqueeze(-3).expand(sizes).reshape(result);
}
Tensor summed(const Tensor& t, int64_t times) {
  if (times == 1) return t;
  Dims sizes = t.sizes();
  sizes[sizes.size() - 3] /= times;
  sizes.insert(sizes.size() - 2, times);
  return t.reshape(sizes).sum(-3);
}
int64_t heads_per_key(const Attention& call) {
  if (call.query.dim() < 3 || call.key.dim() < 3 || call.key.size(-3) <= 1) return 1;
  return std::max<int64_t>(1, call.query.size(-3) / call.key.size(-3));
}

// The gradient of scores from that of their softmax.
Tensor score_slope(const Tensor& weights, const Tensor& weights_grad) {
  return weights * (weights_grad - (weights * weights_grad).sum(-1, true));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> attention_slopes(const Attention& call,
                                                            const Tensor& weights,
                                                            const Tensor& grad,
                                                            const Tensor& weights_grad) {
  const int64_t times = heads_per_key(call);
  Tensor inner = weights_grad, value_grad;
  if (grad.defined()) {
    value_grad = summed(matmul(matrix_transposed(weights), grad), times);
    inner = sum_of(inner, matmul(grad, matrix_transposed(repeated(call.value, times))));
  }
  const Tensor scores = score_slope(weights, inner);
  const Tensor scaled = scores * call.scale;
  return {matmul(scaled, repeated(call.key, times)),
          summed(matmul(matrix_transposed(scaled), call.query), times), value_grad, scores};
}

Tensor attention_bias_slope(const Attention& call, const Tensor& grad, const Tensor& bias,
                            const Tensor& sums, bool is_causal) {
  const int64_t times = heads_per_key(call);
  const Tensor scores =
      matmul(call.query, matrix_transposed(repeated(call.key, times))) * call.scale + bias;
  // A row without a key has sums of -inf, and weights of 0.
  const Tensor raised = sums.unsqueeze(-1).to(scores.dtype());
  const Tensor weights = where(raised.isneginf(), 0, (scores - raised).exp());
  return score_slope(is_causal ? weights.tril() : weights,
                     matmul(grad, matrix_transposed(repeated(call.value, times))));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> lstm_cell_slopes(
    const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& cx, const Tensor& cy,
    const Tensor& workspace, BoolList wanted) {
  const OptionalTensor none;
  const auto [gates, grad_cx, bias] =
      _thnn_fused_lstm_cell_backward_impl(grad_hy.defined() ? OptionalTensor(grad_hy) : none,
                                          grad_cy.defined() ? OptionalTensor(grad_cy) : none, cx,
                                          cy, workspace, wanted.span()[3] || wanted.span()[4]);
  return {gates, gates, grad_cx, bias, bias};
}

}  // namespace ocltensor::detail
