// What formulas of derivatives.def are made of, beside the operators themselves.
#pragma once

#include <numbers>
#include <string_view>
#include <tuple>
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
// The conjugate; a real tensor or number itself.
Tensor conj(const Tensor& t);
Scalar conj(const Scalar& number);
Tensor sum_of(const Tensor& a, const Tensor& b);  // of those that are defined
inline Tensor matrix_transposed(const Tensor& t) { return t.transpose(-2, -1); }

// ---- reductions: `dims` as operators take them; none or empty: all dimensions
Tensor expand_reduced(const Tensor& grad, const Dims& sizes, const IntList& dims, bool keepdim);
double reduced_count(const Dims& sizes, const IntList& dims);
// Equal parts of the gradient for all elements that equal the result.
Tensor share_among_ties(const Tensor& grad, const Tensor& self, const Tensor& result,
                        const IntList& dims, bool keepdim);
// The gradient at the positions along `dim` that a reduction chose.
Tensor selected(const Tensor& grad, const Tensor& positions, const Dims& sizes, int64_t dim,
                bool keepdim);
Tensor product_of_others(const Tensor& self, int64_t dim);
Tensor variance_slope(const Tensor& grad, const Tensor& self, const IntList& dims,
                      const std::optional<Scalar>& correction, bool keepdim);
Tensor norm_slope(const Tensor& grad, const Tensor& self, const Tensor& result, double order,
                  const IntList& dims, bool keepdim);
Tensor log_scan_slope(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor product_scan_slope(const Tensor& grad, const Tensor& self, const Tensor& result,
                          int64_t dim);
inline IntList one_or_all(const std::optional<int64_t>& dim) {
  return dim ? IntList(*dim) : IntList();
}

// ---- choice
template <typename Bound>
Tensor within(const Tensor& self, const std::optional<Bound>& low,
              const std::optional<Bound>& high) {
  if (!low) return self <= *high;
  return high ? (self >= *low) & (self <= *high) : self >= *low;
}
Tensor sinc_slope(const Tensor& self);
Tensor angle_slope(const Tensor& grad, const Tensor& self);

// ---- Fourier transforms
// Zeros of this shape, with `part` in the corner at the beginning of all dimensions.
Tensor in_corner(const Tensor& part, const Dims& sizes);
Tensor half_transform_slope(const Tensor& grad, const IntList& dims, FftNorm norm);

// ---- moving and indexing
std::vector<Tensor> divided(const Tensor& grad, const std::vector<Dims>& sizes, int64_t dim);
Tensor rolled_back(const Tensor& grad, const IntList& shifts, const IntList& dims);
// The sum of the gradients at each position: what gather, sort and topk read from.
Tensor gathered(const Tensor& grad, const Dims& sizes, int64_t dim, const Tensor& index);
// The gradient at the index's positions, zero for elements that no index names.
Tensor scatter_taken(const Tensor& grad, int64_t dim, const Tensor& index, const Dims& sizes);
Tensor scatter_by_mask(const Tensor& grad, const Dims& sizes, const Tensor& mask);
// Of scatter_reduce: of `self` and of `src`.
std::tuple<Tensor, Tensor> reduced_slopes(const Tensor& grad, const Tensor& self, int64_t dim,
                                          const Tensor& index, const Tensor& src,
                                          std::string_view reduce, bool include_self,
                                          const Tensor& result);
// To the places in planes of the last `dims` dimensions that a pool took its results from.
Tensor unpooled(const Tensor& grad, const Tensor& positions, const Dims& sizes, size_t dims);

// ---- losses and attention
Tensor entropy_target_slope(const Tensor& grad, const Tensor& self, const OptionalTensor& weight,
                            Reduction reduction);
Tensor listed_margin_slope(const Tensor& grad, const Tensor& self, const Tensor& target,
                           const Tensor& is_target, Reduction reduction);
// What the attention operators share; tensors of four dimensions or more where heads are shared.
struct Attention {
  Tensor query, key, value;
  double scale;  // of the scores
};
// Of query, key, value and what was added to the scores, from the weights, their gradient and that
// of the result; undefined gradients are zero.
std::tuple<Tensor, Tensor, Tensor, Tensor> attention_slopes(const Attention& call,
                                                            const Tensor& weights,
                                                            const Tensor& grad,
                                                            const Tensor& weights_grad);
// Of the scores' bias, from the logarithm of their sums.
Tensor attention_bias_slope(const Attention& call, const Tensor& grad, const Tensor& bias,
                            const Tensor& sums, bool is_causal);
// TB_UNSUPPORTED for weights that were dropped.
Attention undropped(const char* name, const Tensor& query, const Tensor& key, const Tensor& value,
                    std::optional<double> scale, double dropout);

inline IntList or_kernel(const IntList& stride, const IntList& kernel) {
  return stride.span().empty() ? kernel : stride;
}

// Of input_gates, hidden_gates, cx, input_bias and hidden_bias; a result's gradient may be absent.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> lstm_cell_slopes(
    const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& cx, const Tensor& cy,
    const Tensor& workspace, BoolList wanted);

}  // namespace ocltensor::detail
