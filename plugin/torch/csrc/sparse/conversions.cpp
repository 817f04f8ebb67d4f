// Conversions between compressed layouts: rows become columns, and elements become blocks.
#include "sparse.h"

namespace torch_ocl::sparse {
namespace {

bool is_row_major(at::Layout layout) {
  return layout == at::kSparseCsr || layout == at::kSparseBsr;
}
bool has_blocks(at::Layout layout) { return layout == at::kSparseBsr || layout == at::kSparseBsc; }

Tensor compressed_of(const Tensor& self) {
  return is_row_major(self.layout()) ? self.crow_indices() : self.ccol_indices();
}
Tensor plain_of(const Tensor& self) {
  return is_row_major(self.layout()) ? self.col_indices() : self.row_indices();
}

Tensor make(const Tensor& compressed, const Tensor& plain, const Tensor& values,
            at::IntArrayRef sizes, at::Layout layout) {
  return at::_sparse_compressed_tensor_unsafe(compressed, plain, values, sizes,
                                              values.options().layout(layout));
}

// The layout with the same elements or blocks in the other order.
at::Layout other_order(at::Layout layout) {
  if (layout == at::kSparseCsr) return at::kSparseCsc;
  if (layout == at::kSparseCsc) return at::kSparseCsr;
  return layout == at::kSparseBsr ? at::kSparseBsc : at::kSparseBsr;
}

// Sorts the entries of each matrix of a batch by the other index.
Tensor flipped(const Tensor& self) {
  const Tensor compressed = compressed_of(self), plain = plain_of(self), values = self.values();
  const int64_t batch_dims = compressed.dim() - 1, entries = plain.size(-1);
  const bool narrow = plain.scalar_type() == at::kInt, rows = is_row_major(self.layout());
  const int64_t blocks = has_blocks(self.layout()) ? values.size(batch_dims + (rows ? 2 : 1)) : 1;
  const int64_t length = self.size(batch_dims + (rows ? 1 : 0)) / std::max<int64_t>(blocks, 1);
  const int64_t matrices = compressed.numel() / compressed.size(-1);
  const auto [sorted, order] =
      at::sort(plain.reshape({matrices, entries}), std::optional<bool>(true), 1);
  const Tensor places = at::arange(entries, plain.options()).expand({matrices, entries});
  const Tensor origin = at::searchsorted(compressed.reshape({matrices, compressed.size(-1)}),
                                         places.contiguous(), narrow, /*right=*/true)
                            .sub_(1)
                            .gather(1, order);
  const Tensor numbers = at::arange(length + 1, plain.options()).expand({matrices, length + 1});
  const Tensor starts = at::searchsorted(sorted.contiguous(), numbers.contiguous(), narrow);
  const Tensor first = at::arange(matrices, order.options()).mul_(entries).unsqueeze(1);
  const Tensor moved = values.flatten(0, batch_dims)
                           .index_select(0, order.add(first).reshape({-1}))
                           .view(values.sizes());
  std::vector<int64_t> start_sizes = compressed.sizes().vec();
  start_sizes.back() = length + 1;
  return make(starts.view(start_sizes), origin.view(plain.sizes()), moved, self.sizes(),
              other_order(self.layout()));
}

// A matrix of elements becomes one of blocks.
Tensor in_blocks(const Tensor& self, at::Layout layout, at::IntArrayRef block) {
  TORCH_CHECK(self.dim() == 2, "a conversion from ", self.layout(), " to ", layout,
              " is implemented for matrices of numbers, got ", self.dim(), " dimensions");
  TORCH_CHECK(block.size() == 2 && block[0] > 0 && block[1] > 0,
              "blocksize needs to be a tuple of two positive numbers, got ", block);
  TORCH_CHECK(self.size(0) % block[0] == 0 && self.size(1) % block[1] == 0, "tensor sparse size (",
              self.size(0), ",", self.size(1), ") must be divisible by given blocksize (", block[0],
              ",", block[1], ")");
  const bool rows = is_row_major(layout);
  const Tensor coordinates = self.to_sparse()._indices();
  const Tensor block_rows = coordinates.select(0, 0).floor_divide(block[0]);
  const Tensor block_columns = coordinates.select(0, 1).floor_divide(block[1]);
  const std::vector<int64_t> counts = {self.size(0) / block[0], self.size(1) / block[1]};
  const Tensor major = rows ? block_rows : block_columns, minor = rows ? block_columns : block_rows;
  const Groups groups = group_equal(major.mul(counts[rows ? 1 : 0]).add_(minor));
  const Tensor places = numbers_of(groups)
                            .mul_(block[0] * block[1])
                            .add_(coordinates.select(0, 0).remainder(block[0]).mul_(block[1]))
                            .add_(coordinates.select(0, 1).remainder(block[1]));
  const Tensor source = self.to_sparse()._values();
  const Tensor values = at::zeros({groups.count * block[0] * block[1]}, source.options())
                            .index_copy_(0, places, source)
                            .view({groups.count, block[0], block[1]});
  const Tensor first = groups.order.index_select(0, groups.starts);
  const at::ScalarType type = plain_of(self).scalar_type();
  return make(start_from_rows(major.index_select(0, first), counts[rows ? 0 : 1]).to(type),
              minor.index_select(0, first).to(type), values, self.sizes(), layout);
}

constexpr c10::DispatchKeySet kCpu{c10::DispatchKey::SparseCsrCPU};

// What needs no new order is ATen's own code, which runs on any device.
template <typename Op, at::Layout layout>
Tensor to_elements(const Tensor& self, std::optional<int64_t> dense_dim) {
  if (self.layout() == other_order(layout) && !dense_dim.has_value()) return flipped(self);
  return Op::redispatch(kCpu, self, dense_dim);
}

template <typename Op, at::Layout layout>
Tensor to_blocks(const Tensor& self, at::IntArrayRef block, std::optional<int64_t> dense_dim) {
  if (dense_dim.has_value()) return Op::redispatch(kCpu, self, block, dense_dim);
  if (!has_blocks(self.layout())) return in_blocks(self, layout, block);
  TORCH_CHECK(self.layout() == other_order(layout), "unexpected conversion of layout ", layout);
  const int64_t at = compressed_of(self).dim();
  const Tensor values = self.values();
  TORCH_CHECK(values.sizes().slice(static_cast<size_t>(at), 2) == block, "conversion from ",
              self.layout(), " to ", layout, " with another blocksize is not implemented");
  return flipped(self);
}

Tensor to_layout(const Tensor& self, std::optional<at::Layout> layout,
                 at::OptionalIntArrayRef block, std::optional<int64_t> dense_dim) {
  const at::Layout target = layout.value_or(at::kSparse);
  if (target == at::kSparse || target == self.layout())
    return at::_ops::_to_sparse::redispatch(kCpu, self, layout, block, dense_dim);
  TORCH_CHECK(has_blocks(target) == block.has_value(), "to_sparse for ", self.layout(), " to ",
              target, " conversion ", has_blocks(target) ? "requires" : "does not use",
              " a blocksize");
  if (target == at::kSparseCsr) return self.to_sparse_csr(dense_dim);
  if (target == at::kSparseCsc) return self.to_sparse_csc(dense_dim);
  return target == at::kSparseBsr ? self.to_sparse_bsr(*block, dense_dim)
                                  : self.to_sparse_bsc(*block, dense_dim);
}

namespace ops = at::_ops;

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("_to_sparse", TORCH_FN(to_layout));
  m.impl("_to_sparse_csr", TORCH_FN((to_elements<ops::_to_sparse_csr, at::kSparseCsr>)));
  m.impl("_to_sparse_csc", TORCH_FN((to_elements<ops::_to_sparse_csc, at::kSparseCsc>)));
  m.impl("_to_sparse_bsr", TORCH_FN((to_blocks<ops::_to_sparse_bsr, at::kSparseBsr>)));
  m.impl("_to_sparse_bsc", TORCH_FN((to_blocks<ops::_to_sparse_bsc, at::kSparseBsc>)));
}

}  // namespace torch_ocl::sparse
