// Derivatives of linear algebra. A bar in a comment, as in ~A, is the gradient of that matrix.
#include "matrix_formulas.h"

#include "formulas.h"
#include "tape.h"

namespace ocltensor::detail {
namespace {

Tensor column(const Tensor& t) { return t.unsqueeze(-1); }
Tensor row(const Tensor& t) { return t.unsqueeze(-2); }
Tensor unit(int64_t m, int64_t n, const Tensor& like) {
  return eye(m, n, {like.dtype(), like.device()});
}
// t right^-T for an upper triangle `right`.
Tensor over_transposed(const Tensor& t, const Tensor& right) {
  return linalg_solve_triangular(matrix_transposed(right), t, false, false);
}
Tensor skew(const Tensor& t) { return t - matrix_transposed(t); }

}  // namespace

// Murray 2016: ~A = L^-T phi(L^T ~L) L^-1, where phi takes the lower triangle with half the
// diagonal.
Tensor cholesky_slope(const Tensor& grad, const Tensor& result, bool upper) {
  const Tensor l = upper ? matrix_transposed(result) : result;
  const Tensor product =
      matmul(matrix_transposed(l), (upper ? matrix_transposed(grad) : grad).tril());
  const Tensor phi = (product.tril() + product.tril(-1)) * 0.5;
  const Tensor one_side = linalg_solve_triangular(matrix_transposed(l), phi, true);
  const Tensor slope = linalg_solve_triangular(l, one_side, false, false);
  return (slope + matrix_transposed(slope)) * 0.5;
}

// Giles 2008: of C = A^-1, ~A = -C^T ~C C^T.
Tensor inverse_slope(const Tensor& grad, const Tensor& result) {
  return -matmul(matrix_transposed(result), matmul(grad, matrix_transposed(result)));
}

// Giles 2008: of X = A^-1 B, ~B = A^-T ~X and ~A = -~B X^T, of which only the triangle was read.
std::tuple<Tensor, Tensor> triangular_slopes(const Tensor& grad, const Tensor& self,
                                             const Tensor& result, bool upper, bool left,
                                             bool unitriangular) {
  const Tensor side =
      linalg_solve_triangular(matrix_transposed(self), grad, !upper, left, unitriangular);
  const Tensor whole =
      left ? matmul(side, matrix_transposed(result)) : matmul(matrix_transposed(result), side);
  const int64_t from = unitriangular ? 1 : 0;
  return {-(upper ? whole.triu(from) : whole.tril(-from)), side};
}

// From d(P^T A) = dL U + L dU with L^-1 dL below the diagonal and dU U^-1 not:
//   ~A = P L^-T (below(L^T ~L) + upper(~U U^T)) U^-T
// of a square matrix. Columns past the square are P L U2, rows below it P L2 U: their factors pass
// gradients on to L and to U.
Tensor lu_slope(const Tensor& grad, const Tensor& lu, const Tensor& pivots) {
  if (lu.numel() == 0) return zeros_like(lu);
  const auto [p, l, u] = lu_unpack(lu, pivots);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const Tensor l1 = l.narrow(-2, 0, k), u1 = u.narrow(-1, 0, k);
  const Tensor square = grad.narrow(-2, 0, k).narrow(-1, 0, k);
  Tensor l_grad = square.tril(-1), u_grad = square.triu(), rest;
  if (n > k) {
    rest =
        linalg_solve_triangular(matrix_transposed(l1), grad.narrow(-1, k, n - k), true, true, true);
    l_grad = l_grad - matmul(rest, matrix_transposed(u.narrow(-1, k, n - k))).tril(-1);
  } else if (m > k) {
    const Tensor below = grad.narrow(-2, k, m - k);
    rest = over_transposed(below, u1);
    u_grad = u_grad - matmul(matrix_transposed(l.narrow(-2, k, m - k)), rest).triu();
  }
  const Tensor inner =
      matmul(matrix_transposed(l1), l_grad).tril(-1) + matmul(u_grad, matrix_transposed(u1)).triu();
  Tensor slope =
      linalg_solve_triangular(matrix_transposed(l1), over_transposed(inner, u1), true, true, true);
  if (rest.defined()) slope = cat({slope, rest}, n > k ? -1 : -2);
  return matmul(p, slope);
}

// As of triangular_slopes(), with A = P L U: ~L = below(P^T ~A U^T), ~U = upper(L^T P^T ~A).
std::tuple<Tensor, Tensor> lu_solve_slopes(const Tensor& grad, const Tensor& lu,
                                           const Tensor& pivots, const Tensor& result, bool left,
                                           bool adjoint) {
  if (lu.numel() == 0) return {zeros_like(lu), grad};
  const Tensor side = linalg_lu_solve(lu, pivots, grad, left, !adjoint);
  Tensor a =
      -(left ? matmul(side, matrix_transposed(result)) : matmul(matrix_transposed(result), side));
  if (adjoint) a = matrix_transposed(a);
  const auto [p, l, u] = lu_unpack(lu, pivots);
  const Tensor ordered = matmul(matrix_transposed(p), a);
  return {
      matmul(ordered, matrix_transposed(u)).tril(-1) + matmul(matrix_transposed(l), ordered).triu(),
      side};
}

// Of X = A^-1 B, ~B = A^-T ~X and ~A = -~B X^T, to which the factors' gradient is added.
std::tuple<Tensor, Tensor> solve_slopes(const std::vector<Tensor>& grads, const Tensor& result,
                                        const Tensor& lu, const Tensor& pivots, bool left) {
  Tensor a, b;
  if (grads[0].defined()) {
    b = linalg_lu_solve(lu, pivots, grads[0], left, true);
    a = -(left ? matmul(b, matrix_transposed(result)) : matmul(matrix_transposed(result), b));
  }
  if (grads[1].defined()) {
    if (a.defined()) a = summed_to(a, lu.sizes());  // the factors are those of A itself
    a = sum_of(a, lu_slope(grads[1], lu, pivots));
  }
  return {a, b};
}

Tensor packed(const Tensor& lower, const Tensor& upper, const Dims& sizes) {
  const int64_t m = sizes[sizes.size() - 2], n = sizes.back(), k = std::min(m, n);
  Tensor sum;
  const auto given = [](const Tensor& t) {
    return t.defined() && t.dim() >= 2;
  };  // or not asked for
  if (given(lower)) sum = pad(lower.tril(-1), {0, n - k});
  if (given(upper)) sum = sum_of(sum, pad(upper.triu(), {0, 0, 0, m - k}));
  return sum;
}

// Q = H1 .. Hk E with H = I - tau v v^T. From the left to the right, with G the gradient of
// Hi .. Hk E and N = Hi+1 .. Hk E:  ~tau = -v^T G N^T v,  ~v = -tau (G N^T + N G^T) v.
std::tuple<Tensor, Tensor> reflector_slopes(const Tensor& grad, const Tensor& input,
                                            const Tensor& tau) {
  const int64_t m = input.size(-2), n = input.size(-1), k = tau.size(-1);
  if (k == 0 || input.numel() == 0) return {zeros_like(input), zeros_like(tau)};
  const Tensor vectors = input.narrow(-1, 0, k).tril(-1) + unit(m, k, input);
  const auto vector = [&](int64_t i) { return vectors.narrow(-1, i, 1); };
  const auto factor = [&](int64_t i) { return row(tau.narrow(-1, i, 1)); };
  std::vector<Tensor> after(static_cast<size_t>(k));  // N of each reflector
  Tensor product = unit(m, n, input).expand(input.sizes());
  for (int64_t i = k - 1; i >= 0; --i) {
    after[static_cast<size_t>(i)] = product;
    if (i > 0)
      product =
          product - factor(i) * matmul(vector(i), matmul(matrix_transposed(vector(i)), product));
  }
  std::vector<Tensor> columns, factors;
  Tensor g = grad;
  for (int64_t i = 0; i < k; ++i) {
    const Tensor& rest = after[static_cast<size_t>(i)];
    const Tensor a = matmul(matrix_transposed(g), vector(i)),
                 b = matmul(matrix_transposed(rest), vector(i));
    factors.push_back(-(a * b).sum(-2));
    columns.push_back(-factor(i) * (matmul(g, b) + matmul(rest, a)));
    g = g - factor(i) * matmul(vector(i), matrix_transposed(a));
  }
  return {pad(cat(columns, -1).tril(-1), {0, n - k}), cat(factors, -1)};
}

namespace {

// Roberts 2020: ~A = (~Q + Q copyltu(R ~R^T - ~Q^T Q)) R^-T for a square R, where copyltu repeats
// the lower triangle above the diagonal.
Tensor deep_qr_slope(const Tensor& q_grad, const Tensor& r_grad, const Tensor& q, const Tensor& r) {
  Tensor inner;
  if (r_grad.defined()) inner = matmul(r, matrix_transposed(r_grad.triu()));
  if (q_grad.defined()) inner = sum_of(inner, -matmul(matrix_transposed(q_grad), q));
  const Tensor mirrored = inner.tril() + matrix_transposed(inner.tril(-1));
  return over_transposed(sum_of(matmul(q, mirrored), q_grad), r);
}

}  // namespace

// Of a wide matrix [X Y] = Q [U V] (Roberts 2020): Y = Q V, so ~Q gets Y ~V^T.
Tensor qr_slope(const std::vector<Tensor>& grads, const Tensor& q, const Tensor& r,
                std::string_view mode) {
  const int64_t n = r.size(-1);
  if (mode == "r" || (mode == "complete" && q.size(-2) > n))
    fail(TB_UNSUPPORTED, "the derivative of linalg_qr.out in mode '{}' is not known: use 'reduced'",
         mode);
  const int64_t k = q.size(-1);
  if (n == k) return deep_qr_slope(grads[0], grads[1], q, r);
  const Tensor u = r.narrow(-1, 0, k);
  if (!grads[1].defined()) return pad(deep_qr_slope(grads[0], {}, q, u), {0, n - k});
  const Tensor v_grad = grads[1].narrow(-1, k, n - k);
  const Tensor y = matmul(q, r.narrow(-1, k, n - k));
  const Tensor q_grad = sum_of(matmul(y, matrix_transposed(v_grad)), grads[0]);
  const Tensor left = deep_qr_slope(q_grad, grads[1].narrow(-1, 0, k), q, u);
  return cat({left, matmul(q, v_grad)}, -1);
}

// Townsend 2016:
//   ~A = U [skew(U^T ~U) / E S + S skew(V^T ~V) / E + ~S] V^T
//        + (I - U U^T) ~U S^-1 V^T + U S^-1 ~V^T (I - V V^T),   E_ij = s_j^2 - s_i^2
Tensor svd_slope(const std::vector<Tensor>& grads, const Tensor& self, const Tensor& u,
                 const Tensor& s, const Tensor& vh) {
  if (self.numel() == 0) return zeros_like(self);
  if (u.dim() < 2) {  // only the values were asked for
    const auto [u2, s2, vh2] = _linalg_svd(self, false);
    return matmul(u2 * row(grads[1]), vh2);
  }
  const int64_t m = self.size(-2), n = self.size(-1), k = s.size(-1);
  if ((grads[0].defined() && u.size(-1) > k) || (grads[2].defined() && vh.size(-2) > k))
    fail(TB_UNSUPPORTED,
         "the derivative of _linalg_svd.U with respect to vectors without a singular value is not "
         "known: use full_matrices=false");
  const Tensor u1 = u.narrow(-1, 0, k), v1 = vh.narrow(-2, 0, k);
  const Tensor identity = unit(k, k, s);
  const Tensor gaps = (row(s) - column(s)) * (row(s) + column(s)) + identity;
  Tensor inner, rest;
  if (grads[1].defined()) inner = identity * row(grads[1]);
  if (grads[0].defined()) {
    const Tensor product = matmul(matrix_transposed(u1), grads[0]);
    inner = sum_of(inner, skew(product) / gaps * row(s));
    if (m > k) rest = matmul((grads[0] - matmul(u1, product)) / row(s), v1);
  }
  if (grads[2].defined()) {
    const Tensor product = matmul(grads[2], matrix_transposed(v1));  // ~V^T V
    inner = sum_of(inner, column(s) * (-skew(product) / gaps));
    if (n > k) rest = sum_of(rest, matmul(u1, (grads[2] - matmul(product, v1)) / column(s)));
  }
  return sum_of(matmul(u1, matmul(inner, v1)), rest);
}

}  // namespace ocltensor::detail
