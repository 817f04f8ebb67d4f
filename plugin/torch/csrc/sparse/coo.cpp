// COO tensors: joining equal positions, sums and products, masks, selection.
#include <ATen/native/BinaryOps.h>

#include "sparse.h"

namespace torch_ocl::sparse {
namespace {

using at::Scalar;

Tensor coalesce(const Tensor& self) {
  if (self.is_coalesced()) return self;
  if (self._nnz() < 2) return self.clone()._coalesced_(true);
  const Tensor indices = self._indices();
  const Groups groups = group_equal(positions_of(self));
  const Tensor first = groups.order.index_select(0, groups.starts);
  return make_coo(indices.index_select(1, first), sum_groups(groups, self._values()), self.sizes(),
                  true);
}

// ---- sums

Tensor scaled(const Tensor& values, const Scalar& alpha, at::ScalarType type) {
  const Tensor converted = values.to(type);
  return alpha.equal(1) ? converted : converted.mul(alpha);
}

Tensor& add_to_dense_out(const Tensor& dense, const Tensor& other, const Scalar& alpha,
                         Tensor& out) {
  TORCH_CHECK(dense.sizes().equals(other.sizes()),
              "add: expected 'self' and 'other' to have same size, but self has size ",
              dense.sizes(), " while other has size ", other.sizes(),
              " (FYI: dense-sparse addition does not currently support broadcasting)");
  const at::ScalarType type = at::promoteTypes(dense.scalar_type(), other.scalar_type());
  TORCH_CHECK(c10::canCast(type, out.scalar_type()), "Can't convert result type ", type,
              " to output ", out.scalar_type(), " in add operation");
  at::native::resize_output(out, dense.sizes());
  if (!out.is_same(dense)) out.copy_(dense);
  if (other._nnz() == 0 || out.numel() == 0) return out;
  const bool in_place = out.is_contiguous() && out.scalar_type() == type && type != at::kBool;
  const at::ScalarType wide = type == at::kBool ? at::kInt : type;
  Tensor sum = in_place ? out : out.to(wide).contiguous();
  const int64_t rows = sparse_numel(other);
  Tensor values = scaled(other._values(), alpha, type).to(wide);
  if (type == at::kBool) sum = sum.clone();
  sum.view({rows, sum.numel() / rows})
      .index_add_(0, positions_of(other), values.reshape({other._nnz(), sum.numel() / rows}));
  if (!in_place) out.copy_(type == at::kBool ? sum.ne(0) : sum);
  return out;
}

Tensor& add_out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  check_device("add", self, other);
  check_device("add", self, out);
  if (!self.is_sparse()) return add_to_dense_out(self, other, alpha, out);
  TORCH_CHECK(other.is_sparse(),
              "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  TORCH_CHECK(self.sizes().equals(other.sizes()),
              "add: expected sizes of 'self' and 'other' to match, but ", self.sizes(),
              " != ", other.sizes());
  const at::ScalarType type = at::promoteTypes(self.scalar_type(), other.scalar_type());
  if (other._nnz() == 0) {
    const Tensor copy = self.clone();
    return deliver_coo(out, copy.to(type)._coalesced_(self.is_coalesced()));
  }
  const Tensor values = scaled(other._values(), alpha, type);
  if (self._nnz() == 0)
    return deliver_coo(out, make_coo(other._indices().clone(),
                                     values.is_alias_of(other._values()) ? values.clone() : values,
                                     other.sizes(), other.is_coalesced()));
  TORCH_CHECK(at::sparse::is_same_density(self, other),
              "add: expected 'self' and 'other' to have same density, but 'self' has ",
              self.sparse_dim(), " sparse dimensions while 'other' has ", other.sparse_dim(),
              " sparse dimensions");
  Tensor sum = make_coo(at::cat({self._indices(), other._indices()}, 1),
                        at::cat({self._values().to(type), values}, 0), self.sizes(), false);
  const bool sorted = self.is_coalesced() && other.is_coalesced();
  if (sorted || sum._nnz() > sum.numel()) sum = sum.coalesce();  // as ATen: no unbounded growth
  return deliver_coo(out, sum);
}

// ---- products

// The places that two coalesced tensors share.
Tensor multiply_common(const Tensor& a, const Tensor& b) {
  const Found found = find_sorted(positions_of(b), positions_of(a));
  const Tensor kept = at::nonzero(found.exists).squeeze(1);
  const Tensor values = a._values().index_select(0, kept).mul(
      b._values().index_select(0, found.at.index_select(0, kept)));
  return make_coo(a._indices().index_select(1, kept), values, a.sizes(), true);
}

Tensor& mul_out(const Tensor& self, const Tensor& other, Tensor& out) {
  const bool numbers = self.dim() == 0 || other.dim() == 0;
  if (!numbers) check_device("mul", self, other);
  // ATen's kernel runs on any device where an operand is dense or a single number.
  if (!self.is_sparse() || !other.is_sparse() || numbers)
    return at::_ops::mul_out::redispatch(c10::DispatchKeySet(c10::DispatchKey::SparseCPU), self,
                                         other, out);
  Tensor a = self, b = other;
  if (!a.sizes().equals(b.sizes())) {
    const auto sizes = at::infer_size(a.sizes(), b.sizes());
    TORCH_CHECK(a.dim() == b.dim() && a.sparse_dim() == b.sparse_dim(),
                "mul operands have incompatible sizes");
    a = at::_sparse_broadcast_to(a, sizes);
    b = at::_sparse_broadcast_to(b, sizes);
  }
  TORCH_CHECK(a.sparse_dim() == b.sparse_dim(), "mul: expected 'self' and 'other' to have same ",
              "density, but 'self' has ", a.sparse_dim(), " sparse dimensions while 'other' has ",
              b.sparse_dim(), " sparse dimensions");
  return deliver_coo(out, multiply_common(a.coalesce(), b.coalesce()));
}

// ---- masks

// The rows of `values` that a search found; others are 0.
Tensor select_found(const Tensor& values, const Found& found, int64_t wanted) {
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes[0] = wanted;
  if (values.size(0) == 0) return at::zeros(sizes, values.options());
  std::vector<int64_t> ones(sizes.size(), 1);
  ones[0] = wanted;
  return values.index_select(0, found.at).masked_fill_(found.exists.logical_not().view(ones), 0);
}

Tensor masked_coo(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(self.sparse_dim() == mask.sparse_dim(),
              "sparse_mask(): the number of sparse dimensions in `self` should match that of the "
              "`mask`. Got `self.sparse_dim() == ",
              self.sparse_dim(), "` != `mask.sparse_dim() == ", mask.sparse_dim(), "`.");
  const Tensor source = self.coalesce();
  const Found found = find_sorted(positions_of(source), positions_of(mask));
  return make_coo(mask._indices().clone(), select_found(source._values(), found, mask._nnz()),
                  mask.sizes(), mask.is_coalesced());
}

Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(mask.sizes().equals(self.sizes()),
              "sparse_mask(): operands have incompatible sizes; self has size ", self.sizes(),
              " but mask has size ", mask.sizes());
  TORCH_CHECK(mask.is_sparse(), "sparse_mask(): expected a mask of layout Sparse, got ",
              mask.layout());
  check_device("sparse_mask", self, mask);
  if (self.is_same(mask)) return self;
  if (self.is_sparse()) return masked_coo(self, mask);
  TORCH_CHECK(self.layout() == at::kStrided, "sparse_mask(): a ", self.layout(),
              " tensor cannot be masked by a COO tensor");
  std::vector<int64_t> sizes = mask._values().sizes().vec();
  const int64_t rows = sparse_numel(mask), entries = mask._nnz();
  const Tensor values = rows == 0 || entries == 0 ? at::zeros(sizes, self.options())
                                                  : self.reshape({rows, self.numel() / rows})
                                                        .index_select(0, positions_of(mask))
                                                        .reshape(sizes);
  return make_coo(mask._indices().clone(), values, mask.sizes(), mask.is_coalesced());
}

Tensor sparse_mask_projection(const Tensor& self, const Tensor& mask, bool) {
  TORCH_CHECK(mask.sizes().equals(self.sizes()),
              "_sparse_mask_projection(): operands have incompatible sizes; self has size ",
              self.sizes(), " but mask has size ", mask.sizes());
  return masked_coo(self, mask);
}

// ---- selection

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  TORCH_CHECK_INDEX(self.dim() > 0, "index_select() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK_INDEX(index.dim() <= 1 && index.layout() == at::kStrided,
                    "index_select() argument index must be 1-D strided tensor.");
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
                    "index_select() argument index must be of type long or int.");
  check_device("index_select", self, index);
  dim = at::maybe_wrap_dim(dim, self.dim());
  const int64_t sparse_dim = self.sparse_dim(), size = self.size(dim);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[static_cast<size_t>(dim)] = index.numel();
  if (dim >= sparse_dim)
    return make_coo(self._indices().clone(),
                    self._values().index_select(dim - sparse_dim + 1, index), sizes,
                    self.is_coalesced());
  Tensor wanted = index.to(at::kLong).view({-1});
  if (wanted.numel() > 0) {
    const int64_t low = wanted.min().item<int64_t>(), high = wanted.max().item<int64_t>();
    TORCH_CHECK_INDEX(low >= -size && high < size, "index_select(): index contains ",
                      low < -size ? low : high, " that is out of range for tensor of size ",
                      self.sizes(), " at dimension ", dim);
    wanted = at::where(wanted.lt(0), wanted.add(size), wanted);
  }
  const auto [sorted, order] =
      at::sort(self._indices().select(0, dim), std::optional<bool>(true), 0);
  const Expanded found = expand_rows(start_from_rows(sorted, size), wanted);
  const Tensor entries = order.index_select(0, found.entry);
  const Tensor indices = self._indices().index_select(1, entries);
  indices.select(0, dim).copy_(found.asked);
  return make_coo(indices, self._values().index_select(0, entries), sizes, false);
}

// ---- the gradient of a sum over some dimensions

Tensor sum_backward(const Tensor& grad, const Tensor& self, at::IntArrayRef dims) {
  const int64_t sparse_dim = self.sparse_dim();
  if (self._nnz() == 0) return at::zeros_like(self);
  std::vector<bool> summed(static_cast<size_t>(self.dim()));
  for (const int64_t d : dims)
    summed[static_cast<size_t>(at::maybe_wrap_dim(d, self.dim()))] = true;
  std::vector<int64_t> kept, sizes;
  for (int64_t d = 0; d < sparse_dim; ++d)
    if (!summed[static_cast<size_t>(d)]) {
      kept.push_back(d);
      sizes.push_back(self.size(d));
    }
  // The values' gradient without the summed dense dimensions, then with them.
  Tensor values;
  if (kept.empty()) {
    TORCH_CHECK(!grad.is_sparse(),
                "_sparse_sum_backward: expected grad Tensor to be dense since "
                "all sparse dims are summed");
    values = grad.unsqueeze(0);
  } else {
    TORCH_CHECK(grad.is_sparse(),
                "_sparse_sum_backward: expected grad Tensor to be sparse, but "
                "got dense");
    const Tensor source = grad.coalesce();
    const Tensor rows = at::tensor(kept, at::kLong).to(self.device());
    const Tensor wanted = flatten(self._indices().index_select(0, rows), sizes);
    const Found found = find_sorted(positions_of(source), wanted);
    values = select_found(source._values(), found, self._nnz());
  }
  for (int64_t d = sparse_dim; d < self.dim(); ++d)
    if (summed[static_cast<size_t>(d)]) values = values.unsqueeze(d - sparse_dim + 1);
  values = values.expand(self._values().sizes()).contiguous();
  return make_coo(self._indices().clone(), values, self.sizes(), self.is_coalesced());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_coalesce", TORCH_FN(coalesce));
  m.impl("add.out", TORCH_FN(add_out));
  m.impl("mul.out", TORCH_FN(mul_out));
  m.impl("sparse_mask", TORCH_FN(sparse_mask));
  m.impl("_sparse_mask_projection", TORCH_FN(sparse_mask_projection));
  m.impl("index_select", TORCH_FN(index_select));
  m.impl("_sparse_sum_backward", TORCH_FN(sum_backward));
}

}  // namespace torch_ocl::sparse
