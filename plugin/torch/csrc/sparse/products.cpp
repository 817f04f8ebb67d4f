// Matrix products with COO tensors.
#include "sparse.h"

namespace torch_ocl::sparse {
namespace {

using at::Scalar;

void check_product(const char* name, const Tensor& sparse, const Tensor& dense) {
  TORCH_CHECK(sparse.is_sparse(), name, ": expected a sparse mat1, got layout ", sparse.layout());
  TORCH_CHECK(dense.layout() == at::kStrided, name, ": expected a dense mat2, got layout ",
              dense.layout());
  TORCH_CHECK(sparse.sparse_dim() == 2, name, ": matrices expected, got ", sparse.sparse_dim(),
              "D tensor");
  TORCH_CHECK(sparse.dense_dim() == 0, name, ": scalar values expected, got ", sparse.dense_dim(),
              "D values");
  TORCH_CHECK(dense.dim() == 2, name, ": matrices expected, got ", dense.dim(), "D tensor");
  check_device(name, sparse, dense);
  TORCH_CHECK(sparse.scalar_type() == dense.scalar_type(), name, ": expected mat1 and mat2 to ",
              "have the same dtype, but got ", sparse.scalar_type(), " and ", dense.scalar_type());
}

Tensor sum_of_product(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                      const Scalar& beta, const Scalar& alpha) {
  check_product("addmm", mat1, mat2);
  TORCH_CHECK(mat2.size(0) == mat1.size(1), "addmm: Argument #3 (dense): Expected dim 0 size ",
              mat1.size(1), ", got ", mat2.size(0));
  check_device("addmm", mat1, self);
  const Tensor added = self.expand({mat1.size(0), mat2.size(1)});
  TORCH_CHECK(self.scalar_type() == mat2.scalar_type(),
              "addmm: expected self and mat2 to have the same dtype, but got ", self.scalar_type(),
              " and ", mat2.scalar_type());
  return blend(added, multiply(rows_of(mat1), mat2), beta, alpha);
}

Tensor& addmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                  const Scalar& alpha, Tensor& out) {
  const Tensor result = sum_of_product(self, mat1, mat2, beta, alpha);
  check_device("addmm", result, out);
  TORCH_CHECK(out.scalar_type() == result.scalar_type(), "addmm: Expected result Tensor to be of ",
              "type ", result.scalar_type(), " but got ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor& addmm_(Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
               const Scalar& alpha) {
  TORCH_CHECK(self.dim() == 2 && self.size(0) == mat1.size(0) && self.size(1) == mat2.size(1),
              "addmm: Argument #1 (t): Expected size [", mat1.size(0), ", ", mat2.size(1),
              "], got ", self.sizes());
  return addmm_out(self, mat1, mat2, beta, alpha, self);
}

// A batch as one matrix whose blocks lie on the diagonal.
Tensor batch_product(const Tensor& self, const Tensor& mat2) {
  TORCH_CHECK(self.sparse_dim() == 3 && self.dense_dim() == 0,
              "bmm_sparse: Tensor 'self' must have 3 sparse dims and no dense dims, but has ",
              self.sparse_dim(), " and ", self.dense_dim());
  TORCH_CHECK(mat2.layout() == at::kStrided,
              "bmm_sparse: Tensor 'mat2' must be dense, but got layout ", mat2.layout());
  TORCH_CHECK(mat2.dim() == 3, "bmm_sparse: Tensor 'mat2' must have 3 dims, but has ", mat2.dim());
  TORCH_CHECK(self.size(0) == mat2.size(0),
              "bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must "
              "match");
  TORCH_CHECK(self.size(2) == mat2.size(1),
              "bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must "
              "match");
  check_device("bmm", self, mat2);
  TORCH_CHECK(self.scalar_type() == mat2.scalar_type(),
              "bmm_sparse: expected self and mat2 to have the same dtype, but got ",
              self.scalar_type(), " and ", mat2.scalar_type());
  const int64_t batch = self.size(0), rows = self.size(1), inner = self.size(2);
  const Tensor indices = self._indices();
  const Tensor blocks = at::stack({indices.select(0, 0).mul(rows).add_(indices.select(0, 1)),
                                   indices.select(0, 0).mul(inner).add_(indices.select(0, 2))});
  const Tensor matrix =
      make_coo(blocks, self._values(), {batch * rows, batch * inner}, self.is_coalesced());
  return multiply(rows_of(matrix), mat2.reshape({batch * inner, mat2.size(2)}))
      .view({batch, rows, mat2.size(2)});
}

Tensor& bmm_out(const Tensor& self, const Tensor& mat2, Tensor& out) {
  const Tensor result = batch_product(self, mat2);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// The rows that have entries, as a tensor with one sparse dimension.
Tensor stored_rows(const Tensor& mat1, const Tensor& mat2) {
  check_product("hspmm", mat1, mat2);
  TORCH_CHECK(mat2.size(0) == mat1.size(1), "hspmm: Argument #3: Expected dim 0 size ",
              mat1.size(1), ", got ", mat2.size(0));
  const Tensor matrix = mat1.coalesce();
  const Groups rows = group_equal(matrix._indices().select(0, 0));
  const Tensor start = at::cat({rows.starts, at::full({1}, matrix._nnz(), rows.starts.options())});
  const Tensor values = multiply({start, matrix._indices().select(0, 1), matrix._values()}, mat2);
  return make_coo(matrix._indices().select(0, 0).index_select(0, rows.starts).unsqueeze(0), values,
                  {mat1.size(0), mat2.size(1)}, false);
}

Tensor& hspmm_out(const Tensor& mat1, const Tensor& mat2, Tensor& out) {
  return deliver_coo(out, stored_rows(mat1, mat2));
}

// beta * self + alpha * product, where the product has all elements of the rows that have entries.
Tensor& sspaddmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha, Tensor& out) {
  TORCH_CHECK(mat1.is_sparse(),
              "sspaddmm: expected 'mat1' to have sparse layout, got 'mat1' with layout ",
              mat1.layout());
  TORCH_CHECK(self.is_sparse(), "sspaddmm: expected 'self' to have sparse layout, got layout ",
              self.layout());
  check_product("sspaddmm", mat1, mat2);
  check_device("sspaddmm", mat1, self);
  TORCH_CHECK(mat2.size(0) == mat1.size(1), "sspaddmm: Argument #3: Expected dim 0 size ",
              mat1.size(1), ", got ", mat2.size(0));
  const std::vector<int64_t> sizes = {mat1.size(0), mat2.size(1)};
  for (int64_t d = 0; d < 2 && !out.is_same(self); ++d)  // smm() passes an empty result as self
    TORCH_CHECK(self.size(d) == sizes[static_cast<size_t>(d)], "sspaddmm: Argument #1: Expected ",
                "dim ", d, " size ", sizes[static_cast<size_t>(d)], ", got ", self.size(d));
  const Tensor rows = stored_rows(mat1, mat2);
  const Tensor numbers = rows._indices().select(0, 0);
  const int64_t count = numbers.numel(), columns = mat2.size(1);
  const Tensor indices = at::stack({numbers.unsqueeze(1).expand({count, columns}).reshape({-1}),
                                    at::arange(columns, numbers.options()).repeat({count})});
  const Tensor product = make_coo(indices, rows._values().mul(alpha).reshape({-1}), sizes, false);
  return deliver_coo(out, is_zero(beta) ? product : at::add(self.mul(beta), product));
}

// Each entry of the first factor meets all entries of a row of the second.
Tensor sparse_sparse_matmul(const Tensor& mat1, const Tensor& mat2) {
  TORCH_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "sparse matmul: matrices expected, got ",
              mat1.dim(), "D and ", mat2.dim(), "D tensors");
  TORCH_CHECK(mat1.dense_dim() == 0 && mat2.dense_dim() == 0,
              "sparse matmul: scalar values expected, got ", mat1.dense_dim(), "D and ",
              mat2.dense_dim(), "D values");
  check_inner_sizes("_sparse_sparse_matmul", mat1, mat2);
  check_device("sparse matmul", mat1, mat2);
  TORCH_CHECK(mat1.scalar_type() == mat2.scalar_type(), "mat1 dtype ", mat1.scalar_type(),
              " does not match mat2 dtype ", mat2.scalar_type());
  const Tensor left = mat1.coalesce();
  const Rows right = rows_of(mat2.coalesce());
  const Expanded met = expand_rows(right.start, left._indices().select(0, 1));
  const Tensor indices = at::stack({left._indices().select(0, 0).index_select(0, met.asked),
                                    right.columns.index_select(0, met.entry)});
  const Tensor values =
      left._values().index_select(0, met.asked).mul(right.values.index_select(0, met.entry));
  return make_coo(indices, values, {mat1.size(0), mat2.size(1)}, false).coalesce();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("addmm", TORCH_FN(sum_of_product));
  m.impl("addmm.out", TORCH_FN(addmm_out));
  m.impl("addmm_", TORCH_FN(addmm_));
  m.impl("bmm", TORCH_FN(batch_product));
  m.impl("bmm.out", TORCH_FN(bmm_out));
  m.impl("hspmm", TORCH_FN(stored_rows));
  m.impl("hspmm.out", TORCH_FN(hspmm_out));
  m.impl("sspaddmm.out", TORCH_FN(sspaddmm_out));
  m.impl("_sparse_sparse_matmul", TORCH_FN(sparse_sparse_matmul));
}

}  // namespace torch_ocl::sparse
