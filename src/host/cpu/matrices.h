// Batches of matrices as the functions of dense linear algebra take them: in double, row by row.
#pragma once

#include "call.h"

namespace ocltensor::cpu {

// Dense row-major copies of a batch of matrices, possibly broadcast.
struct Matrices {
  std::vector<double> values;
  int64_t rows, columns;

  Matrices(const View& view, const Dims& batch) : Matrices(broadcast_to(view, batch)) {}
  explicit Matrices(const View& view)
      : values(read<double>(view)),
        rows(view.sizes[view.sizes.size() - 2]),
        columns(view.sizes.back()) {}
  Matrices(int64_t count, int64_t rows, int64_t columns)
      : values(static_cast<size_t>(count * rows * columns)), rows(rows), columns(columns) {}
  double* operator[](int64_t i) { return values.data() + i * rows * columns; }

 private:
  static View broadcast_to(const View& view, const Dims& batch) {
    Dims sizes = batch;
    sizes.push_back(view.sizes[view.sizes.size() - 2]);
    sizes.push_back(view.sizes.back());
    return view.broadcast_to(sizes);
  }
};

// The last two dimensions swapped.
inline View turned(View v) {
  std::swap(v.sizes[v.sizes.size() - 1], v.sizes[v.sizes.size() - 2]);
  std::swap(v.strides[v.sizes.size() - 1], v.strides[v.sizes.size() - 2]);
  return v;
}

// The dimensions before the last two.
inline Dims batch_of(const View& v) {
  Dims batch = v.sizes;
  batch.pop_back();
  batch.pop_back();
  return batch;
}

}  // namespace ocltensor::cpu
