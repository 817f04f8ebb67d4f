// What formulas of derivatives.def are made of, beside the operators themselves.
#pragma once

#include <numbers>
#include <vector>

#include "ocltensor/functional.h"

namespace ocltensor::detail {

inline constexpr double kLog2 = std::numbers::ln2;
inline constexpr double kLog10 = std::numbers::ln10;
inline constexpr double kTwoOverRootPi = 2 * std::numbers::inv_sqrtpi;
inline constexpr double kRootHalf = std::numbers::sqrt2 / 2;
inline constexpr double kRootTwoPi = std::numbers::sqrt2 / std::numbers::inv_sqrtpi;

// `grad` times a number, or itself for one.
Tensor times(const Tensor& grad, const Scalar& number);
Tensor sum_of(const Tensor& a, const Tensor& b);  // of those that are defined

// ---- reductions: `dims` as operators take them; none or empty: all dimensions
Tensor restore(const Tensor& grad, const Dims& sizes, const IntList& dims, bool keepdim);
double reduced_count(const Dims& sizes, const IntList& dims);
// Equal parts of the gradient for all elements that equal the result.
Tensor shared(const Tensor& grad, const Tensor& self, const Tensor& result, const IntList& dims,
              bool keepdim);
// The gradient at the positions along `dim` that a reduction chose.
Tensor selected(const Tensor& grad, const Tensor& positions, const Dims& sizes, int64_t dim,
                bool keepdim);
Tensor product_of_others(const Tensor& self, int64_t dim);
Tensor variance_slope(const Tensor& grad, const Tensor& self, const IntList& dims,
                      const std::optional<Scalar>& correction, bool keepdim);
Tensor norm_slope(const Tensor& grad, const Tensor& self, const Tensor& result, double order,
                  const IntList& dims, bool keepdim);
Tensor log_scan_slope(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);

// ---- choice
template <typename Bound>
Tensor within(const Tensor& self, const std::optional<Bound>& low,
              const std::optional<Bound>& high) {
  if (!low) return self <= *high;
  return high ? (self >= *low) & (self <= *high) : self >= *low;
}
Tensor sinc_slope(const Tensor& self);

// ---- moving and indexing
std::vector<Tensor> divided(const Tensor& grad, const std::vector<Dims>& sizes, int64_t dim);
Tensor rolled_back(const Tensor& grad, const IntList& shifts, const IntList& dims);
// The sum of the gradients at each position: what gather, sort and topk read from.
Tensor gathered(const Tensor& grad, const Dims& sizes, int64_t dim, const Tensor& index);
// The gradient at the index's positions, zero for elements that no index names.
Tensor taken(const Tensor& grad, int64_t dim, const Tensor& index, const Dims& sizes);
Tensor put_back(const Tensor& grad, const Dims& sizes, const Tensor& mask);

inline IntList or_kernel(const IntList& stride, const IntList& kernel) {
  return stride.span().empty() ? kernel : stride;
}

}  // namespace ocltensor::detail
