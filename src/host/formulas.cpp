// Formulas of derivatives that take more than a line.
#include "formulas.h"

#include <cmath>

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

}  // namespace

Tensor times(const Tensor& grad, const Scalar& number) {
  return number.as_double() == 1 ? grad : grad * number;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

Tensor restore(const Tensor& grad, const Dims& sizes, const IntList& dims, bool keepdim) {
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

Tensor shared(const Tensor& grad, const Tensor& self, const Tensor& result, const IntList& dims,
              bool keepdim) {
  const Tensor chosen = (self == restore(result, self.sizes(), dims, keepdim)).to(grad.dtype());
  if (self.dim() == 0) return chosen * grad;
  const std::vector<int64_t> reduced = reduced_dims(self.sizes(), dims);
  return chosen / chosen.sum(reduced, true) * restore(grad, self.sizes(), dims, keepdim);
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
  return restore(grad, self.sizes(), dims, keepdim) * centred * (2 / degrees);
}

Tensor norm_slope(const Tensor& grad, const Tensor& self, const Tensor& result, double order,
                  const IntList& dims, bool keepdim) {
  const Tensor g = restore(grad, self.sizes(), dims, keepdim);
  if (order == 0) return zeros_like(self);
  if (order == 1) return g * self.sign();
  const Tensor norm = restore(result, self.sizes(), dims, keepdim);
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

Tensor sinc_slope(const Tensor& self) {
  const Tensor x = self * std::numbers::pi;
  return where(self == 0, 0, (x * x.cos() - x.sin()) / (x * self));
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

Tensor taken(const Tensor& grad, int64_t dim, const Tensor& index, const Dims& sizes) {
  const Tensor read = grad.gather(dim, index);
  if (read.sizes() == sizes) return read;
  const Tensor gradient = zeros(sizes, like(grad));
  Tensor corner = gradient;
  for (int64_t d = 0; d < read.dim(); ++d) corner = corner.narrow(d, 0, read.size(d));
  corner.copy_(read);
  return gradient;
}

Tensor put_back(const Tensor& grad, const Dims& sizes, const Tensor& mask) {
  const Tensor positions = nonzero(mask.expand(broadcast(sizes, mask.sizes())));
  const Tensor gradient = zeros(broadcast(sizes, mask.sizes()), like(grad));
  std::vector<Tensor> indices;
  for (int64_t d = 0; d < gradient.dim(); ++d) indices.push_back(positions.select(1, d));
  return indices.empty() ? grad.reshape({}) : gradient.index_put(indices, grad, true);
}

}  // namespace ocltensor::detail
