// Eigenvalues of general matrices, and LDL^T factorisations, with ATen's errors.
#include <ATen/native/LinearAlgebraUtils.h>

#include <algorithm>

#include "composite.h"
#include "operators/register_kernels.h"

namespace torch_ocl {
namespace {

using at::Tensor;
namespace ops = at::_ops;

PluginOperator plugin_eig("linalg_eig.out");
PluginOperator plugin_eigvals("linalg_eigvals.out");
PluginOperator plugin_ldl_factor("linalg_ldl_factor_ex.out");

// ---- eigenvalues

// `name` as ATen has it: "linalg.eig".
void check_matrices(const Tensor& a, const char* name) {
  at::native::squareCheckInputs(a, name);
  c10::toComplexType(a.scalar_type());  // raises ATen's error for integers
}
void check_out(const Tensor& a, const Tensor& out, const char* name, const char* what) {
  const std::string function = std::string("torch.") + name;
  at::native::checkSameDevice(function, out, a, what);
  at::native::checkLinalgCompatibleDtype(function, out.scalar_type(),
                                         c10::toComplexType(a.scalar_type()), what);
}

// Raises ATen's error where the plugin reported a failure by NaN for all eigenvalues of a matrix.
// LAPACK's `info` is how many eigenvalues are not known: all of them.
void check_eigenvalues(const Tensor& a, const Tensor& values, const char* name) {
  if (values.numel() == 0) return;
  const Tensor failed = values.select(-1, 0).cpu().isnan();
  if (!failed.any().item<bool>()) return;
  TORCH_CHECK(at::isfinite(a).all().item<bool>(), "torch.", name,
              ": input tensor should not contain infs or NaNs.");
  at::_linalg_check_errors(failed.to(at::kInt) * a.size(-1), name, a.dim() == 2);
}

std::tuple<Tensor, Tensor> eig(const Tensor& a) {
  check_matrices(a, "linalg.eig");
  auto result = Functional<ops::linalg_eig, plugin_eig>::call(a);
  check_eigenvalues(a, std::get<0>(result), "linalg.eig");
  return result;
}
std::tuple<Tensor&, Tensor&> eig_out(const Tensor& a, Tensor& values, Tensor& vectors) {
  check_matrices(a, "linalg.eig");
  check_out(a, values, "linalg.eig", "eigenvalues");
  check_out(a, vectors, "linalg.eig", "eigenvectors");
  const auto [l, v] = eig(a);
  return {deliver(values, l), deliver(vectors, v)};
}
Tensor eigvals(const Tensor& a) {
  check_matrices(a, "linalg.eigvals");
  Tensor values = Functional<ops::_linalg_eigvals, plugin_eigvals>::call(a);
  check_eigenvalues(a, values, "linalg.eigvals");
  return values;
}
Tensor& eigvals_out(const Tensor& a, Tensor& values) {
  check_matrices(a, "linalg.eigvals");
  check_out(a, values, "linalg.eigvals", "eigenvalues");
  return deliver(values, eigvals(a));
}

// ---- LDL^T

std::tuple<Tensor&, Tensor&, Tensor&> ldl_factor_ex_out(const Tensor& a, bool hermitian,
                                                        bool check_errors, Tensor& ld,
                                                        Tensor& pivots, Tensor& info) {
  Out<ops::linalg_ldl_factor_ex_out, plugin_ldl_factor>::call(a, hermitian, check_errors, ld,
                                                              pivots, info);
  if (check_errors) at::_linalg_check_errors(info, "torch.linalg.ldl_factor_ex", a.dim() == 2);
  return {ld, pivots, info};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("linalg_eig", TORCH_FN(eig));
  m.impl("linalg_eig.out", TORCH_FN(eig_out));
  m.impl("_linalg_eigvals", TORCH_FN(eigvals));
  m.impl("linalg_eigvals.out", TORCH_FN(eigvals_out));
  m.impl("linalg_ldl_factor_ex.out", TORCH_FN(ldl_factor_ex_out));
}

}  // namespace torch_ocl
