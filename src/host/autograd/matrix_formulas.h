// Derivatives of linear algebra, for derivatives.def. Matrices are the last two dimensions.
//
// Sources, named at each formula:
//   Giles 2008: "An extended collection of matrix derivative results for forward and reverse mode
//     algorithmic differentiation", Oxford University Computing Laboratory, report 08/01
//   Murray 2016: "Differentiation of the Cholesky decomposition", arXiv:1602.07527
//   Townsend 2016: "Differentiating the singular value decomposition", technical report
//   Roberts 2020: D. Roberts and L. Roberts, "QR and LQ decomposition matrix backpropagation
//     algorithms for square, wide, and deep matrices and their software implementation",
//     arXiv:2009.10071
#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "ocltensor/functional.h"

namespace ocltensor::detail {

// With respect to the whole symmetric matrix, though only one triangle of it is read.
Tensor cholesky_slope(const Tensor& grad, const Tensor& result, bool upper);
Tensor inverse_slope(const Tensor& grad, const Tensor& result);
// Of the triangle and of the right side.
std::tuple<Tensor, Tensor> triangular_slopes(const Tensor& grad, const Tensor& self,
                                             const Tensor& result, bool upper, bool left,
                                             bool unitriangular);
Tensor lu_slope(const Tensor& grad, const Tensor& lu, const Tensor& pivots);
// Of the matrices and of the right side.
std::tuple<Tensor, Tensor> solve_slopes(const std::vector<Tensor>& grads, const Tensor& result,
                                        const Tensor& lu, const Tensor& pivots, bool left);
// Of the compact factors and of the right side.
std::tuple<Tensor, Tensor> lu_solve_slopes(const Tensor& grad, const Tensor& lu,
                                           const Tensor& pivots, const Tensor& result, bool left,
                                           bool adjoint);
// Of the compact factors; an undefined gradient is zero.
Tensor packed(const Tensor& lower, const Tensor& upper, const Dims& sizes);
// Of the reflectors and of their factors.
std::tuple<Tensor, Tensor> reflector_slopes(const Tensor& grad, const Tensor& input,
                                            const Tensor& tau);
// TB_UNSUPPORTED where Q is square and not unique, or is not there.
Tensor qr_slope(const std::vector<Tensor>& grads, const Tensor& q, const Tensor& r,
                std::string_view mode);
// Unique where no singular values are equal. TB_UNSUPPORTED for gradients of vectors that belong to
// no singular value.
Tensor svd_slope(const std::vector<Tensor>& grads, const Tensor& self, const Tensor& u,
                 const Tensor& s, const Tensor& vh);

}  // namespace ocltensor::detail
