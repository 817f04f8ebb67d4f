// Rows of one dimension of a view, for operators that work along that dimension.
#pragma once

#include "call.h"

namespace ocltensor::cpu {

// A dense copy of a view with dimension `dim` last; write() puts rows back into a view likewise.
template <typename T>
struct DimRows {
  std::vector<T> values;
  int64_t length;
  int64_t count;
  DimRows(const View& view, int64_t dim) : values(read<T>(view.with_last_dim(dim))) {
    length = view.with_last_dim(dim).sizes.back();
    count = length == 0 ? 0 : static_cast<int64_t>(values.size()) / length;
  }
  std::span<T> operator[](int64_t r) {
    return {values.data() + r * length, static_cast<size_t>(length)};
  }
  void write_to(const View& view, int64_t dim) const { write(view.with_last_dim(dim), values); }
};

}  // namespace ocltensor::cpu
