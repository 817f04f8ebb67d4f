// Rearranging views.
#include "view.h"

namespace ocltensor::cpu {

View View::with_last(DimMask mask) const {
  View result = *this;
  result.sizes.clear();
  result.strides.clear();
  for (const bool last : {false, true})
    for (size_t d = 0; d < sizes.size(); ++d)
      if (mask[d] == last) {
        result.sizes.push_back(sizes[d]);
        result.strides.push_back(strides[d]);
      }
  return result;
}

View View::with_last_dim(int64_t dim) const {
  if (ndim() > 0) return with_last(DimMask().set(static_cast<size_t>(wrap_dim(dim, ndim()))));
  View result = *this;
  result.sizes.push_back(1);
  result.strides.push_back(1);
  return result;
}

View View::broadcast_to(std::span<const int64_t> target) const {
  View result = *this;
  result.strides = broadcast_strides(sizes, strides, target);
  result.sizes = target;
  return result;
}

View View::narrow(int64_t dim, int64_t start, int64_t length) const {
  View result = *this;
  const auto d = static_cast<size_t>(dim);
  result.data = at(start * strides[d]);
  result.sizes[d] = length;
  return result;
}

}  // namespace ocltensor::cpu
