// Eigenvalues, with ATen's errors.
#include <algorithm>

#include "composite.h"
#include "operators/register_kernels.h"

namespace torch_ocl {
namespace {

using at::Tensor;
namespace ops = at::_ops;

PluginOperator plugin_eigh("_linalg_eigh.eigenvalues");

// Raises ATen's error where the plugin reported a failure by NaN for all eigenvalues of a matrix.
// LAPACK's `info` is how many off-diagonal elements did not converge: all of them.
void check_eigenvalues(const Tensor& a, const Tensor& values) {
  if (values.numel() == 0) return;
  const Tensor failed = values.select(-1, 0).cpu().isnan();
  if (!failed.any().item<bool>()) return;
  const Tensor info = failed.to(at::kInt) * std::max<int64_t>(a.size(-1) - 1, 1);
  at::_linalg_check_errors(info, "linalg.eigh", a.dim() == 2);
}

std::tuple<Tensor&, Tensor&> eigh_out(const Tensor& a, c10::string_view triangle, bool vectors,
                                      Tensor& l, Tensor& v) {
  Out<ops::_linalg_eigh_eigenvalues, plugin_eigh>::call(a, triangle, vectors, l, v);
  check_eigenvalues(a, l);
  return {l, v};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_linalg_eigh.eigenvalues", TORCH_FN(eigh_out)); }

}  // namespace torch_ocl
