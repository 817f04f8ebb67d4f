// Rows of different lengths that lie one after another (offsets say where each begins), to and from
// rows of one length.
#include "composite.h"
#include "operators/operator.h"

namespace torch_ocl {
namespace {

using at::Tensor;

// [0, 1, ..., count - 1] in the type and on the device of `like`
Tensor numbers(int64_t count, const Tensor& like) { return at::arange(count, like.options()); }

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
  // What is within a row is read: beyond the elements it is reported.
  const Tensor found =
      values.index_select(0, places.masked_fill(within.logical_not(), 0).reshape({-1})).view(sizes);
  return found.masked_fill(wide_mask(within.logical_not(), found), padding);
}

// Elements beyond the rows' common length are 0.
Tensor padded_to_jagged(const Tensor& dense, at::TensorList all_offsets,
                        std::optional<int64_t> total) {
  const Tensor offsets = only(all_offsets, "_padded_dense_to_jagged_forward").to(at::kLong);
  const int64_t count = total.has_value() ? *total : offsets[-1].item<int64_t>();
  std::vector<int64_t> sizes = dense.sizes().slice(1).vec();
  sizes[0] = count;
  const Tensor row = row_of_each(offsets, count, {true, true});
  if (count == 0 || dense.numel() == 0) return at::zeros(sizes, dense.options());
  const Tensor rows = row.clamp_(0, dense.size(0) - 1);
  const Tensor columns = numbers(count, offsets) - offsets.index_select(0, rows);
  const Tensor beyond = columns.ge(dense.size(1));
  const Tensor flat = rows.mul(dense.size(1)).add_(columns.clamp_max(dense.size(1) - 1));
  const Tensor found = dense.flatten(0, 1).index_select(0, flat).view(sizes);
  return found.masked_fill(wide_mask(beyond, found), 0);
}

}  // namespace

Tensor row_of_each(const Tensor& offsets, int64_t count, Ends ends) {
  static PluginOperator& op = *new PluginOperator("_ocl_rows_of.out");
  std::array<Tensor, 1> out;
  if (try_plugin(op, out, offsets, count, ends.from_start, ends.to_end)) return out[0];
  // Where it is disabled: the same numbers, but no report of wrong offsets.
  std::vector<int64_t> sizes = offsets.sizes().vec();
  sizes.back() = count;
  const Tensor sorted = offsets.to(at::kLong).contiguous();
  return at::searchsorted(sorted, numbers(count, sorted).expand(sizes).contiguous(), false, true)
      .sub_(1);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_jagged_to_padded_dense_forward", TORCH_FN(jagged_to_padded));
  m.impl("_padded_dense_to_jagged_forward", TORCH_FN(padded_to_jagged));
}

}  // namespace torch_ocl
