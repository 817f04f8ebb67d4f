// Constructors and counts: indices of triangles, bincount.
#include <ATen/native/TensorFactories.h>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;

Tensor triangle(int64_t rows, int64_t columns, int64_t offset, bool lower,
                std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                std::optional<at::Device> device) {
  TORCH_CHECK(rows >= 0, "row must be non-negative, got ", rows);
  TORCH_CHECK(columns >= 0, "col must be non-negative, got ", columns);
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "only support layout=torch.strided");
  const auto options = at::TensorOptions(device.value_or(at::kPrivateUse1));
  const Tensor all = at::ones({rows, columns}, options.dtype(at::kBool));
  offset = std::clamp(offset, -rows - 1, columns + 1);
  const int64_t below = at::native::get_tril_size(rows, columns, lower ? offset : offset - 1);
  const Tensor found = at::nonzero_static(lower ? all.tril(offset) : all.triu(offset),
                                          lower ? below : rows * columns - below);
  return found.t().to(type.value_or(at::kLong)).contiguous();
}
Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset,
                    std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                    std::optional<at::Device> device, std::optional<bool>) {
  return triangle(rows, columns, offset, true, type, layout, device);
}
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset,
                    std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                    std::optional<at::Device> device, std::optional<bool>) {
  return triangle(rows, columns, offset, false, type, layout, device);
}

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, c10::SymInt minlength) {
  const int64_t least = plain(minlength);
  const bool weighted = weights.has_value() && weights->defined();
  TORCH_CHECK(at::isIntegralType(self.scalar_type(), false),
              "bincount only supports integer inputs, got ", self.scalar_type());
  TORCH_CHECK(least >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  TORCH_CHECK(!weighted || weights->sizes() == self.sizes(),
              "weights should be 1-d and have the same length as input");
  const bool narrow = weighted && weights->scalar_type() == at::kFloat;
  const auto type = !weighted ? at::kLong : narrow ? at::kFloat : at::kDouble;
  if (self.numel() == 0) return at::zeros({least}, self.options().dtype(at::kLong));
  const auto [low, high] = at::aminmax(self);
  TORCH_CHECK(low.item<int64_t>() >= 0, "bincount only supports 1-d non-negative integral inputs.");
  const Tensor place = self.to(at::kLong);
  Tensor counts =
      at::zeros({std::max(least, high.item<int64_t>() + 1)}, self.options().dtype(type));
  return counts.scatter_add_(0, place, weighted ? weights->to(type) : at::ones_like(place));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("tril_indices", TORCH_FN(tril_indices));
  m.impl("triu_indices", TORCH_FN(triu_indices));
  m.impl("bincount", TORCH_FN(bincount));
}

}  // namespace torch_ocl
