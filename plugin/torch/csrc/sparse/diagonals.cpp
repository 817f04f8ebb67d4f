// Sparse matrices with given diagonals.
#include "sparse.h"

namespace torch_ocl::sparse {
namespace {

// Element j of a diagonal is in column j, and in row j minus the diagonal's offset.
Tensor spdiags(const Tensor& diagonals, const Tensor& offsets, at::IntArrayRef shape,
               std::optional<at::Layout> layout) {
  TORCH_CHECK(diagonals.dim() <= 2, "Diagonals must be vector or matrix");
  TORCH_CHECK(shape.size() == 2, "Output shape must be 2d");
  TORCH_CHECK(offsets.dim() <= 1, "Offsets must be scalar or vector");
  TORCH_CHECK(offsets.scalar_type() == at::kLong, "Offset Tensor must have dtype Long but got ",
              offsets.scalar_type());
  check_device("spdiags", diagonals, offsets);
  const Tensor rows = diagonals.dim() == 2 ? diagonals : diagonals.reshape({1, -1});
  const Tensor which = offsets.reshape({-1});
  const int64_t count = which.numel(), length = std::min(rows.size(1), shape[1]);
  TORCH_CHECK(rows.size(0) == count, "Number of diagonals (", rows.size(0),
              ") does not match the number of offsets (", count, ")");
  const at::Layout target = layout.value_or(at::kSparse);
  TORCH_CHECK(target == at::kSparse || target == at::kSparseCsr || target == at::kSparseCsc,
              "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got ", target);
  TORCH_CHECK(count == 0 || group_equal(which).count == count,
              "Offset tensor contains duplicate values");
  const Tensor columns = at::arange(length, which.options()).expand({count, length});
  const Tensor places = columns.sub(which.unsqueeze(1));
  const Tensor kept =
      at::nonzero(places.ge(0).logical_and_(places.lt(shape[0])).reshape({-1})).squeeze(1);
  const Tensor indices = at::stack(
      {places.reshape({-1}).index_select(0, kept), columns.reshape({-1}).index_select(0, kept)});
  const Tensor values = rows.narrow(1, 0, length).reshape({-1}).index_select(0, kept);
  const Tensor matrix = make_coo(indices, values, shape, false);
  return target == at::kSparse ? matrix : matrix.to_sparse(target);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_spdiags", TORCH_FN(spdiags)); }

}  // namespace torch_ocl::sparse
