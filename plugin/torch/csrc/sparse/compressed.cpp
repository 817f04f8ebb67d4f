// Compressed tensors: sums, matrix products, reductions of rows and columns.
#include "sparse.h"

namespace torch_ocl::sparse {
namespace {

using at::Scalar;

// Makes `out`, a compressed tensor, be `result`, a COO tensor.
Tensor& deliver_compressed(Tensor& out, const Tensor& result) {
  const Tensor converted = result.coalesce().to(out.scalar_type()).to_sparse(out.layout());
  out.resize_as_sparse_(converted);
  return out.copy_(converted);
}

bool is_dense(const Tensor& tensor) { return tensor.layout() == at::kStrided; }

// The sum of two tensors, of which one may be dense; COO, or dense.
Tensor sum_of(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (is_dense(self)) return at::add(self, other.to_sparse(), alpha);
  if (is_dense(other)) return at::add(other.mul(alpha), self.to_sparse());
  return at::add(self.to_sparse(), other.to_sparse(), alpha);
}

Tensor& add_compressed_out(const Tensor& self, const Tensor& other, const Scalar& alpha,
                           Tensor& out) {
  TORCH_CHECK(self.sizes().equals(other.sizes()),
              "torch.add: Expected input tensors to have the same shape, but got tensor `self` "
              "with shape ",
              self.sizes(), " and tensor `other` with shape ", other.sizes());
  check_device("add", self, other);
  check_device("add", self, out);
  const Tensor sum = sum_of(self, other, alpha);
  TORCH_CHECK(is_dense(out) == is_dense(sum), "torch.add: a result of layout ", sum.layout(),
              " cannot be written to a tensor of layout ", out.layout());
  if (!is_dense(out)) return deliver_compressed(out, sum);
  at::native::resize_output(out, sum.sizes());
  return out.copy_(sum);
}

// ---- products

void check_factors(const Tensor& mat1, const Tensor& mat2) {
  TORCH_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "addmm: matrices expected, got ", mat1.dim(),
              "D and ", mat2.dim(), "D tensors");
  check_inner_sizes("addmm", mat1, mat2);
  check_device("addmm", mat1, mat2);
  TORCH_CHECK(mat1.scalar_type() == mat2.scalar_type(), "expected scalar type ", mat1.scalar_type(),
              " but found ", mat2.scalar_type());
}

Tensor dense_product(const Tensor& mat1, const Tensor& mat2) {
  if (is_dense(mat2)) return multiply(rows_of(mat1), mat2);
  if (!is_dense(mat1))
    return at::_sparse_sparse_matmul(mat1.to_sparse(), mat2.to_sparse()).to_dense();
  // The transposed product: compressed columns are the rows of the transposed matrix.
  if (mat2.layout() == at::kSparseCsc)
    return multiply({mat2.ccol_indices(), mat2.row_indices(), mat2.values()}, mat1.t()).t();
  return multiply(transposed(rows_of(mat2), mat2.size(1)), mat1.t()).t();
}

Tensor& addmm_compressed_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                             const Scalar& beta, const Scalar& alpha, Tensor& out) {
  check_factors(mat1, mat2);
  check_device("addmm", mat1, self);
  check_device("addmm", mat1, out);
  if (is_dense(out)) {
    const Tensor added =
        is_dense(self) ? self.expand({mat1.size(0), mat2.size(1)}) : self.to_dense();
    const Tensor result = blend(added, dense_product(mat1, mat2), beta, alpha);
    at::native::resize_output(out, result.sizes());
    return out.copy_(result);
  }
  TORCH_CHECK(!is_dense(mat1) && !is_dense(mat2),
              "addmm: computation on ocl is not implemented for ", mat1.layout(), " + ",
              mat2.layout(), " -> ", out.layout());
  Tensor product = at::_sparse_sparse_matmul(mat1.to_sparse(), mat2.to_sparse());
  if (!alpha.equal(1)) product = product.mul(alpha);
  if (!is_zero(beta)) {
    TORCH_CHECK(!is_dense(self), "addmm: a dense tensor cannot be added to a result of layout ",
                out.layout());
    product = at::add(product, self.to_sparse(), beta);
  }
  return deliver_compressed(out, product);
}

Tensor& addmv_out(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                  const Scalar& alpha, Tensor& out) {
  TORCH_CHECK(mat.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got ",
              self.dim(), ", ", mat.dim(), ", ", vec.dim());
  TORCH_CHECK(mat.size(1) == vec.size(0), "size mismatch, got input (", self.size(0), "), mat (",
              mat.size(0), "x", mat.size(1), "), vec (", vec.size(0), ")");
  TORCH_CHECK(is_dense(vec) && is_dense(out), "addmv: the vectors must be dense");
  check_device("addmv", mat, vec);
  check_device("addmv", mat, out);
  TORCH_CHECK(mat.scalar_type() == vec.scalar_type(), "expected scalar type ", mat.scalar_type(),
              " but found ", vec.scalar_type());
  const Tensor product = multiply(rows_of(mat), vec.unsqueeze(1)).squeeze(1);
  const Tensor result = blend(self.expand({mat.size(0)}), product, beta, alpha);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// ---- reductions; the reduced dimensions stay, with size 1

template <bool is_product>
Tensor reduce(const Tensor& self, at::IntArrayRef dims, bool keepdim,
              std::optional<at::ScalarType> dtype) {
  TORCH_CHECK(keepdim, "reduction operations on CSR tensors with keepdim=False is unsupported");
  TORCH_CHECK(self.dim() == 2 && self.layout() == at::kSparseCsr,
              "reductions are implemented for matrices of layout SparseCsr");
  bool reduced[2] = {dims.empty(), dims.empty()};
  for (const int64_t d : dims) reduced[at::maybe_wrap_dim(d, 2)] = true;
  const int64_t entries = self._nnz();
  const bool whole = at::isIntegralType(self.scalar_type(), true);
  Tensor values = self.values().to(dtype.value_or(whole ? at::kLong : self.scalar_type()));
  const Tensor rows = rows_from_start(self.crow_indices(), entries), columns = self.col_indices();
  const std::vector<int64_t> sizes = {reduced[0] ? 1 : self.size(0), reduced[1] ? 1 : self.size(1)};
  const Tensor none = at::zeros_like(columns);
  const Tensor indices = at::stack({reduced[0] ? none : rows, reduced[1] ? none : columns});
  const Groups groups = group_equal(flatten(indices, sizes));
  if (is_product)
    values = at::ones({groups.count}, values.options())
                 .scatter_reduce_(0, numbers_of(groups), values, "prod");
  else
    values = sum_groups(groups, values);
  const Tensor kept = indices.index_select(1, groups.order.index_select(0, groups.starts));
  return make_csr(start_from_rows(kept.select(0, 0), sizes[0]), kept.select(0, 1), values, sizes);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("add.out", TORCH_FN(add_compressed_out));
  m.impl("addmm.out", TORCH_FN(addmm_compressed_out));
  m.impl("addmv.out", TORCH_FN(addmv_out));
  m.impl("_sparse_csr_sum.dim_dtype", TORCH_FN(reduce<false>));
  m.impl("_sparse_csr_prod.dim_dtype", TORCH_FN(reduce<true>));
}

}  // namespace torch_ocl::sparse
