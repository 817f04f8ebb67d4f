// Rows of different lengths: indices of compressed sparse tensors as plain integers, and rows that
// lie one after another (offsets say where each begins) to and from rows of one length.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;

at::ScalarType index_type(bool narrow) { return narrow ? at::kInt : at::kLong; }

// [0, 1, ..., count - 1] in the type and on the device of `like`
Tensor numbers(int64_t count, const Tensor& like) { return at::arange(count, like.options()); }

// How many of the sorted rows are below each of 0 .. size.
Tensor& coo_to_csr_out(const Tensor& self, int64_t size, bool narrow, Tensor& out) {
  TORCH_CHECK(self.dim() <= 1, "Input is supposed to be a vector, but got ", self.dim(),
              " dimensional tensor.");
  const Tensor begins = at::searchsorted(self.contiguous(), numbers(size + 1, self), narrow);
  return deliver(out, begins.to(index_type(narrow)));
}

// Batches come first: a row of indices for each of their dimensions, then rows and columns.
Tensor& csr_to_coo_out(const Tensor& crow, const Tensor& col, bool narrow, bool transpose,
                       Tensor& out) {
  const int64_t nnz = col.size(-1), batches = crow.dim() - 1;
  std::vector<int64_t> sizes = crow.sizes().slice(0, static_cast<size_t>(batches)).vec();
  sizes.push_back(nnz);
  const Tensor places = numbers(nnz, crow).expand(sizes).contiguous();
  const Tensor rows = at::searchsorted(crow.contiguous(), places, false, true).sub_(1);
  std::vector<Tensor> parts;
  for (int64_t d = 0; d < batches; ++d) {
    std::vector<int64_t> shape(sizes.size(), 1);
    shape[static_cast<size_t>(d)] = sizes[static_cast<size_t>(d)];
    parts.push_back(numbers(crow.size(d), rows).view(shape).expand(sizes).reshape({-1}));
  }
  parts.push_back(rows.reshape({-1}));
  parts.push_back(col.to(rows.scalar_type()).reshape({-1}));
  if (transpose) std::swap(parts[parts.size() - 1], parts[parts.size() - 2]);
  return deliver(out, at::stack(parts).to(index_type(narrow)));
}

const Tensor& only(at::TensorList offsets, const char* name) {
  TORCH_CHECK(offsets.size() == 1, name, ": only a single jagged dim is supported");
  return offsets[0];
}

// `mask` of size [a, b] for tensors of size [a, b, ...]
Tensor wide_mask(const Tensor& mask, const Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  for (int64_t d = 0; d < mask.dim(); ++d) shape[static_cast<size_t>(d)] = mask.size(d);
  return mask.view(shape);
}

Tensor jagged_to_padded(const Tensor& values, at::TensorList all_offsets,
                        at::IntArrayRef max_lengths, double padding) {
  const Tensor offsets = only(all_offsets, "_jagged_to_padded_dense_forward").to(at::kLong);
  const int64_t rows = offsets.numel() - 1, length = max_lengths.at(0);
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes[0] = length;
  sizes.insert(sizes.begin(), rows);
  if (values.size(0) == 0) return at::full(sizes, padding, values.options());
  const Tensor places = offsets.narrow(0, 0, rows).unsqueeze(1) + numbers(length, offsets);
  const Tensor within = places.lt(offsets.narrow(0, 1, rows).unsqueeze(1));
  const Tensor found =
      values.index_select(0, places.clamp(0, values.size(0) - 1).reshape({-1})).view(sizes);
  return found.masked_fill(wide_mask(within.logical_not(), found), padding);
}

// Elements beyond the rows' common length are 0.
Tensor padded_to_jagged(const Tensor& dense, at::TensorList all_offsets,
                        std::optional<int64_t> total) {
  const Tensor offsets = only(all_offsets, "_padded_dense_to_jagged_forward").to(at::kLong);
  const int64_t count = total.has_value() ? *total : offsets[-1].item<int64_t>();
  std::vector<int64_t> sizes = dense.sizes().slice(1).vec();
  sizes[0] = count;
  if (count == 0 || dense.numel() == 0) return at::zeros(sizes, dense.options());
  const Tensor places = numbers(count, offsets);
  const Tensor rows =
      at::searchsorted(offsets, places, false, true).sub_(1).clamp_(0, dense.size(0) - 1);
  const Tensor columns = places - offsets.index_select(0, rows);
  const Tensor beyond = columns.ge(dense.size(1));
  const Tensor flat = rows.mul(dense.size(1)).add_(columns.clamp_max(dense.size(1) - 1));
  const Tensor found = dense.flatten(0, 1).index_select(0, flat).view(sizes);
  return found.masked_fill(wide_mask(beyond, found), 0);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_convert_indices_from_coo_to_csr.out", TORCH_FN(coo_to_csr_out));
  m.impl("_convert_indices_from_csr_to_coo.out", TORCH_FN(csr_to_coo_out));
  m.impl("_jagged_to_padded_dense_forward", TORCH_FN(jagged_to_padded));
  m.impl("_padded_dense_to_jagged_forward", TORCH_FN(padded_to_jagged));
}

}  // namespace torch_ocl
