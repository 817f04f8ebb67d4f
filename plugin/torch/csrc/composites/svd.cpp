// Singular values, with ATen's errors, and least squares.
#include <ATen/native/LinearAlgebraUtils.h>

#include <algorithm>

#include "composite.h"
#include "operators/fallback.h"
#include "operators/register_kernels.h"

namespace torch_ocl {
namespace {

using at::Tensor;
namespace ops = at::_ops;

PluginOperator plugin_svd("_linalg_svd.U");

// Raises ATen's error where the plugin reported a failure by NaN for all singular values of a
// matrix. The numbers are LAPACK's `info`, from which ATen makes its text.
void check_singular_values(const Tensor& a, const Tensor& values) {
  if (values.numel() == 0) return;
  const Tensor failed = values.select(-1, 0).cpu().isnan();
  if (!failed.any().item<bool>()) return;
  const Tensor finite = a.isfinite().flatten(-2).all(-1).cpu();
  const Tensor info = (finite.to(at::kInt) * 5 - 4) * failed;  // 1: not converged, -4: not finite
  at::_linalg_check_errors(info, "linalg.svd", a.dim() == 2);
}

std::tuple<Tensor&, Tensor&, Tensor&> svd_out(const Tensor& a, bool full, bool vectors,
                                              std::optional<c10::string_view> driver, Tensor& u,
                                              Tensor& s, Tensor& vh) {
  TORCH_CHECK(!driver.has_value(),
              "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
              "cuSOLVER backend.");
  Out<ops::_linalg_svd_U, plugin_svd>::call(a, full, vectors, driver, u, s, vh);
  check_singular_values(a, s);
  return {u, s, vh};
}

double default_limit(const Tensor& a) {
  const double eps = c10::toRealValueType(a.scalar_type()) == at::kDouble
                         ? std::numeric_limits<double>::epsilon()
                         : std::numeric_limits<float>::epsilon();
  return eps * static_cast<double>(std::max(a.size(-2), a.size(-1)));
}

// ATen makes its tolerances in float64, one number for each matrix of a batch: if the device does
// not compute in float64, they are made in the matrices' own type.
Tensor pinv(const Tensor& a, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol,
            bool hermitian) {
  const BelowAutocast guard;
  if (a.dim() < 2 || a.scalar_type() == at::kDouble || a.scalar_type() == at::kComplexDouble ||
      !lacks_float64(a))
    return at::native::linalg_pinv(a, atol, rtol, hermitian);
  const auto own = [&](const std::optional<Tensor>& tolerance, double otherwise) {
    const auto real = c10::toRealValueType(a.scalar_type());
    return tolerance ? tolerance->to(real) : at::full({}, otherwise, a.options().dtype(real));
  };
  const Tensor absolute = own(atol, 0);
  Tensor relative = own(rtol, default_limit(a));
  if (atol && !rtol) relative = at::where(absolute > 0, at::zeros_like(relative), relative);
  return at::native::linalg_pinv(a, absolute, relative, hermitian);
}

// ---- least squares

at::TensorOptions real_options(const Tensor& a) {
  return a.options().dtype(c10::toRealValueType(a.scalar_type()));
}

struct Solution {
  Tensor x, rank, singular_values;
};

// For matrices of full rank, by QR: the driver "gels".
Solution solve_by_qr(const Tensor& a, const Tensor& right) {
  const bool tall = a.size(-2) >= a.size(-1);
  const auto [q, r] = at::linalg_qr(tall ? a : a.mH(), "reduced");
  const Tensor x = tall ? at::linalg_solve_triangular(r, q.mH().matmul(right), true)
                        // the solution of the least norm
                        : q.matmul(at::linalg_solve_triangular(r.mH(), right, false));
  return {x, at::empty({0}, a.options().dtype(at::kLong)), at::empty({0}, a.options())};
}

// The solution of the least norm, for any rank; singular values up to `limit` times the largest
// count as 0.
Solution solve_by_svd(const Tensor& a, const Tensor& right, double limit) {
  const auto [u, s, vh] = at::_linalg_svd(a, false, true);
  const Tensor largest = s.narrow(-1, 0, std::min<int64_t>(s.size(-1), 1));
  const Tensor counts = s.gt(largest * limit);
  const Tensor inverse = at::where(counts, s.reciprocal(), at::zeros({}, s.options()));
  const Tensor x = vh.mH().matmul(inverse.unsqueeze(-1) * u.mH().matmul(right));
  return {x, counts.sum(-1), s};
}

void check_lstsq(const Tensor& a, const Tensor& b, const Tensor& right, bool vector) {
  TORCH_CHECK(a.size(-2) == right.size(-2),
              vector ? "torch.linalg.lstsq: input.size(-2) should match other.size(-1)"
                     : "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
  TORCH_CHECK(
      b.scalar_type() == a.scalar_type(),
      "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's "
      "dtype ",
      a.scalar_type(), " and other's dtype ", b.scalar_type());
}

// The squared norms of the residuals, one per right-hand side.
Tensor residuals_of(const Tensor& a, const Tensor& x, const Tensor& right) {
  if (a.size(-1) == 0) return at::zeros_like(right).abs().sum(-2);
  const Tensor rest = a.dim() == 2 ? at::addmm(right, a, x, 1, -1) : right - a.matmul(x);
  return rest.abs().square().sum(-2);
}

std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> lstsq_out(const Tensor& a, const Tensor& b,
                                                         std::optional<double> limit,
                                                         std::optional<c10::string_view> driver,
                                                         Tensor& solution, Tensor& residuals,
                                                         Tensor& rank, Tensor& singular_values) {
  TORCH_CHECK(a.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  TORCH_CHECK(b.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
  const int64_t difference = a.dim() - b.dim();
  TORCH_CHECK(difference >= 0 && difference <= 1,
              "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
              "(input.dim() - other.dim()) <= 1");
  const bool vector = at::native::linalg_solve_is_vector_rhs(a, b);
  const Tensor right = vector ? b.unsqueeze(-1) : b;
  check_lstsq(a, b, right, vector);
  const std::string_view method = driver.value_or("gels");
  const bool by_values = method == "gelss" || method == "gelsd";
  TORCH_CHECK(
      by_values || method == "gels" || method == "gelsy",
      "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  const BelowAutocast guard;
  const Solution found = method == "gels"
                             ? solve_by_qr(a, right)
                             : solve_by_svd(a, right, limit.value_or(default_limit(a)));
  const int64_t n = a.size(-1);
  // As on the CPU: "gelsy" returns none; the other drivers return them for matrices of full rank
  // only.
  const bool has_residuals =
      a.size(-2) > n && (method == "gels" || (by_values && at::all(found.rank.eq(n)).item<bool>()));
  deliver(solution, vector ? found.x.squeeze(-1) : found.x);
  deliver(residuals,
          has_residuals ? residuals_of(a, found.x, right) : at::empty({0}, real_options(a)));
  deliver(rank, found.rank);
  deliver(singular_values, by_values ? found.singular_values : at::empty({0}, real_options(a)));
  return {solution, residuals, rank, singular_values};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_linalg_svd.U", TORCH_FN(svd_out));
  m.impl("linalg_lstsq.out", TORCH_FN(lstsq_out));
  m.impl("linalg_pinv.atol_rtol_tensor", TORCH_FN(pinv));
}

}  // namespace torch_ocl
