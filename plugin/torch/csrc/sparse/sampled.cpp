// Products of which only some elements are wanted, and products whose terms are reduced, with
// gradients.
#include "sparse.h"

namespace torch_ocl::sparse {
namespace {

using at::Scalar;

constexpr int64_t kChunk = int64_t{1}
                           << 20;  // elements of an intermediate result, which stay in caches

// The products of pairs of rows: for each entry the sum of a[rows] * b[columns]. 16-bit numbers are
// summed in float32.
Tensor dots(const Tensor& a, const Tensor& rows, const Tensor& b, const Tensor& columns) {
  const int64_t entries = rows.numel(), length = a.size(1);
  const bool narrow = a.scalar_type() == at::kHalf || a.scalar_type() == at::kBFloat16;
  const Tensor out = at::zeros({entries}, a.options());
  const int64_t step = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, length));
  for (int64_t e = 0; e < entries; e += step) {
    const int64_t count = std::min(step, entries - e);
    Tensor left = a.index_select(0, rows.narrow(0, e, count));
    const Tensor right = b.index_select(0, columns.narrow(0, e, count));
    if (narrow) left = left.to(at::kFloat);
    out.narrow(0, e, count).copy_(left.mul(right).sum(1));
  }
  return out;
}

void check_sampled(const Tensor& self, const Tensor& mat1, const Tensor& mat2) {
  TORCH_CHECK(self.layout() == at::kSparseCsr,
              "sampled_addmm: Expected self to have sparse csr "
              "layout, but got ",
              self.layout());
  TORCH_CHECK(mat1.layout() == at::kStrided,
              "sampled_addmm: Expected mat1 to have strided "
              "layout, but got ",
              mat1.layout());
  TORCH_CHECK(mat2.layout() == at::kStrided,
              "sampled_addmm: Expected mat2 to have strided "
              "layout, but got ",
              mat2.layout());
  TORCH_CHECK(mat1.dim() >= 2 && mat2.dim() >= 2,
              "sampled_addmm: Expected mat1 and mat2 to be "
              "matrices, got ",
              mat1.dim(), "-D and ", mat2.dim(), "-D tensors");
  TORCH_CHECK(mat1.scalar_type() == mat2.scalar_type(),
              "sampled_addmm: Expected mat1 and mat2 to have the same dtype, but got ",
              mat1.scalar_type(), " and ", mat2.scalar_type());
  TORCH_CHECK(mat1.scalar_type() == self.scalar_type(),
              "sampled_addmm: Expected mat1 and self to have the same dtype, but got ",
              mat1.scalar_type(), " and ", self.scalar_type());
  const auto batch = [](const Tensor& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim() - 2));
  };
  TORCH_CHECK(batch(self) == batch(mat1) && batch(mat1) == batch(mat2),
              "sampled_addmm: Expected self, mat1 and mat2 to have the same batch size");
  TORCH_CHECK(mat1.size(-1) == mat2.size(-2),
              "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (", mat1.size(-2), "x",
              mat1.size(-1), " and ", mat2.size(-2), "x", mat2.size(-1), ")");
  TORCH_CHECK(self.size(-2) == mat1.size(-2),
              "sampled_addmm: self.shape[-2] must match mat1.shape[-2]");
  TORCH_CHECK(self.size(-1) == mat2.size(-1),
              "sampled_addmm: self.shape[-1] must match mat2.shape[-1]");
  check_device("sampled_addmm", self, mat1);
  check_device("sampled_addmm", self, mat2);
}

// All entries of a batch are those of one matrix: matrix i has the rows after those of i - 1.
Tensor sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  check_sampled(self, mat1, mat2);
  const Tensor start = self.crow_indices(), columns = self.col_indices();
  const int64_t entries = columns.size(-1);
  const int64_t length = mat1.size(-1);
  const int64_t matrices = start.numel() / start.size(-1);
  const Tensor first = mat1.reshape({matrices, self.size(-2), length});
  const Tensor second = mat2.mT().reshape({matrices, self.size(-1), length});
  const Tensor starts = start.reshape({matrices, start.size(-1)});
  const Tensor all = columns.reshape({matrices, entries});
  std::vector<Tensor> products;
  for (int64_t i = 0; i < matrices; ++i)
    products.push_back(dots(first[i], rows_from_start(starts[i], entries), second[i], all[i]));
  const Tensor product = matrices == 0 ? at::zeros({0}, mat1.options()) : at::cat(products);
  const Tensor values = blend(self.values(), product.view(self.values().sizes()), beta, alpha);
  return make_csr(start, columns, values, self.sizes());
}

Tensor& sampled_addmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                          const Scalar& beta, const Scalar& alpha, Tensor& out) {
  const Tensor result = sampled_addmm(self, mat1, mat2, beta, alpha);
  TORCH_CHECK(out.layout() == at::kSparseCsr && out.scalar_type() == result.scalar_type(),
              "sampled_addmm: Expected result to have sparse csr layout and dtype ",
              result.scalar_type(), ", but got ", out.layout(), " and ", out.scalar_type());
  check_device("sampled_addmm", result, out);
  if (out.is_same(self)) {
    out.values().copy_(result.values());
    return out;
  }
  out.resize_as_sparse_(result);
  return out.copy_(result);
}

// ---- products whose terms are reduced

// ATen's other names of two reductions.
c10::string_view plain_name(c10::string_view reduce) {
  if (reduce == "max") return "amax";
  return reduce == "min" ? "amin" : reduce;
}

void check_reduced(const Tensor& self, const Tensor& other, c10::string_view reduce) {
  TORCH_CHECK(self.layout() == at::kSparseCsr,
              "sparse_mm_reduce: expect self to be SparseCsr, got ", self.layout());
  TORCH_CHECK(other.layout() == at::kStrided && other.dim() == 2,
              "sparse_mm_reduce: expect other to be a dense matrix, got layout ", other.layout(),
              " and ", other.dim(), " dimensions");
  check_device("sparse_mm_reduce", self, other);
  TORCH_CHECK(other.size(0) == self.size(1),
              "Expected a tensor of dimension 2 and tensor.size[0] == ", self.size(1),
              " but got: dimension 2 and tensor.size[0] = ", other.size(0));
  TORCH_CHECK(other.scalar_type() == self.scalar_type(),
              "Expected tensor for argument #1 'other' to have scalar type ", self.scalar_type(),
              "; but got ", other.scalar_type(), " instead (while checking arguments for ",
              "sparse_mm_reduce)");
  TORCH_CHECK(reduce != "prod", "sparse_mm_reduce: reduce type of prod has not been enabled.");
  TORCH_CHECK(reduce == "sum" || reduce == "mean" || reduce == "amax" || reduce == "amin",
              "reduce argument must be either sum, mean, amax or amin, got ", reduce);
}

// For each element of the result the first entry that it was taken from; `entries` where a row has
// none.
Tensor taken_from(const Tensor& self, const Tensor& other, const Tensor& out) {
  const int64_t entries = self._nnz();
  const Tensor columns = self.col_indices();
  const Tensor rows = rows_from_start(self.crow_indices(), entries).to(at::kLong);
  const Tensor terms = self.values().unsqueeze(1).mul(other.index_select(0, columns));
  const Tensor taken = terms.eq(out.index_select(0, rows)).logical_or_(terms.isnan());
  const Tensor numbers = at::arange(entries, rows.options()).unsqueeze(1);
  return at::full(out.sizes(), entries, rows.options())
      .scatter_reduce_(0, rows.unsqueeze(1).expand_as(terms), at::where(taken, numbers, entries),
                       "amin")
      .to(columns.scalar_type());
}

std::tuple<Tensor, Tensor> mm_reduce(const Tensor& self, const Tensor& other,
                                     c10::string_view named) {
  const c10::string_view reduce = plain_name(named);
  check_reduced(self, other, reduce);
  const Tensor out = multiply(rows_of(self), other, reduce);
  const bool extreme = reduce == "amax" || reduce == "amin";
  const bool differentiated =
      at::GradMode::is_enabled() && (self.requires_grad() || other.requires_grad());
  if (!extreme || !differentiated || self._nnz() == 0)
    return {out, at::empty({0}, self.col_indices().options())};
  return {out, taken_from(self, other, out)};
}

// Of a sum, or of a mean as the sum of other slopes.
std::tuple<Tensor, Tensor> sum_backward(const Tensor& self, const Tensor& grad, const Tensor& other,
                                        std::array<bool, 2> wanted) {
  const Rows rows = rows_of(self);
  Tensor values, slope;
  if (wanted[0]) values = dots(grad, rows_from_start(rows.start, self._nnz()), other, rows.columns);
  if (wanted[1]) slope = multiply(transposed(rows, self.size(1)), grad);
  return {values, slope};
}

std::tuple<Tensor, Tensor> extreme_backward(const Tensor& self, const Tensor& grad,
                                            const Tensor& other, const Tensor& from,
                                            std::array<bool, 2> wanted) {
  const int64_t entries = self._nnz();
  // One more entry takes the slopes of rows without entries.
  const Tensor place = from.reshape({-1}).to(at::kLong);
  const Tensor column = at::cat({self.col_indices(), at::zeros({1}, self.col_indices().options())})
                            .index_select(0, place)
                            .to(at::kLong)
                            .view(grad.sizes());
  Tensor values, slope;
  if (wanted[0])
    values = at::zeros({entries + 1}, grad.options())
                 .index_add_(0, place, grad.mul(other.gather(0, column)).reshape({-1}))
                 .narrow(0, 0, entries);
  if (wanted[1]) {
    const Tensor factors = at::cat({self.values(), at::zeros({1}, self.values().options())})
                               .index_select(0, place)
                               .view(grad.sizes());
    slope = at::zeros_like(other, at::MemoryFormat::Contiguous)
                .scatter_add_(0, column, factors.mul(grad));
  }
  return {values, slope};
}

std::tuple<Tensor, Tensor> mm_reduce_backward(const Tensor& self, const Tensor& grad_out,
                                              const Tensor& other, c10::string_view named,
                                              const Tensor& from, std::array<bool, 2> wanted) {
  const c10::string_view reduce = plain_name(named);
  const bool extreme = reduce == "amax" || reduce == "amin";
  Tensor grad = grad_out.contiguous();
  if (reduce == "mean")
    grad = grad.div(self.crow_indices().diff().clamp_min_(1).unsqueeze(1).to(grad.scalar_type()));
  auto [values, slope] = self._nnz() == 0
                             ? std::tuple{at::zeros({0}, grad.options()), at::zeros_like(other)}
                             : (extreme ? extreme_backward(self, grad, other, from, wanted)
                                        : sum_backward(self, grad, other, wanted));
  if (!wanted[0]) return {Tensor(), slope};
  return {make_csr(self.crow_indices(), self.col_indices(), values, self.sizes()),
          wanted[1] ? slope : Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("sparse_sampled_addmm", TORCH_FN(sampled_addmm));
  m.impl("sparse_sampled_addmm.out", TORCH_FN(sampled_addmm_out));
  m.impl("_sparse_mm_reduce_impl", TORCH_FN(mm_reduce));
  m.impl("_sparse_mm_reduce_impl_backward", TORCH_FN(mm_reduce_backward));
}

}  // namespace torch_ocl::sparse
