// Distances between rows, and their gradients: norms of differences, for slices of rows at a time.
#include <cmath>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Sizes = std::vector<int64_t>;

// The most elements of differences that exist at once.
constexpr int64_t kMostDifferences = int64_t{1} << 26;

// Both tensors, expanded to the same batch dimensions.
std::pair<Tensor, Tensor> with_one_batch(const Tensor& x1, const Tensor& x2) {
  Sizes batch =
      at::infer_size(x1.sizes().slice(0, x1.dim() - 2), x2.sizes().slice(0, x2.dim() - 2));
  Sizes first = batch, second = batch;
  first.insert(first.end(), {x1.size(-2), x1.size(-1)});
  second.insert(second.end(), {x2.size(-2), x2.size(-1)});
  return {x1.expand(first), x2.expand(second)};
}

// Calls f(first row, rows) for slices of the rows of x1; concatenates the results along `dim`.
template <typename F>
Tensor by_rows(const Tensor& x1, const Tensor& x2, F&& f) {
  const int64_t rows = x1.size(-2);
  const int64_t each = rows == 0 ? 0 : x1.numel() / rows * x2.size(-2);
  const int64_t step = std::max<int64_t>(1, kMostDifferences / std::max<int64_t>(1, each));
  if (step >= rows) return f(0, rows);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < rows; i += step) parts.push_back(f(i, std::min(step, rows - i)));
  return at::cat(parts, -2);
}

Tensor cdist_forward(const Tensor& first, const Tensor& second, double p,
                     std::optional<int64_t> mode) {
  TORCH_CHECK(first.dim() >= 2 && second.dim() >= 2,
              "cdist only supports at least 2D tensors, got ", first.dim(), "D and ", second.dim(),
              "D");
  TORCH_CHECK(first.size(-1) == second.size(-1),
              "X1 and X2 must have the same number of columns. X1: ", first.size(-1),
              " X2: ", second.size(-1));
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  const auto [x1, x2] = with_one_batch(first, second);
  const bool large = x1.size(-2) > 25 || x2.size(-2) > 25;
  const int64_t chosen = mode.value_or(0);  // 0: products where there are many rows; 1: always
  Sizes shape = x1.sizes().vec();
  shape.back() = x2.size(-2);
  if (x1.numel() == 0 || x2.numel() == 0) return at::zeros(shape, x1.options());
  if (p == 2 && (chosen == 1 || (chosen == 0 && large))) return at::_euclidean_dist(x1, x2);
  return by_rows(x1, x2, [&, &x1 = x1, &x2 = x2](int64_t start, int64_t count) {
    const Tensor difference = x1.narrow(-2, start, count).unsqueeze(-2) - x2.unsqueeze(-3);
    return at::linalg_vector_norm(difference, p, at::IntArrayRef{-1});
  });
}

// The gradient of a norm `distance` of `difference`; 0 where the norm is 0.
Tensor slope(const Tensor& difference, const Tensor& distance, double p) {
  if (p == 0) return at::zeros_like(difference);
  if (p == 1) return difference.sign();
  if (std::isinf(p)) return difference.sign() * difference.abs().eq(distance);
  if (p == 2) return (difference / distance).masked_fill_(distance.eq(0), 0);
  const Tensor ratio = difference.sign() * (difference.abs() / distance).pow_(p - 1);
  const Tensor none = distance.eq(0);
  return ratio.masked_fill_(p < 1 ? none.logical_or(difference.eq(0)) : none, 0);
}

Tensor cdist_backward(const Tensor& grad, const Tensor& first, const Tensor& second, double p,
                      const Tensor& distance) {
  const auto [x1, x2] = with_one_batch(first, second);
  if (x1.numel() == 0 || x2.numel() == 0) return at::zeros(x1.sizes(), x1.options());
  return by_rows(x1, x2, [&, &x1 = x1, &x2 = x2](int64_t start, int64_t count) {
    const Tensor difference = x1.narrow(-2, start, count).unsqueeze(-2) - x2.unsqueeze(-3);
    const Tensor norms = distance.narrow(-2, start, count).unsqueeze(-1);
    return (grad.narrow(-2, start, count).unsqueeze(-1) * slope(difference, norms, p)).sum(-2);
  });
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_cdist_forward", TORCH_FN(cdist_forward));
  m.impl("_cdist_backward", TORCH_FN(cdist_backward));
}

}  // namespace torch_ocl
