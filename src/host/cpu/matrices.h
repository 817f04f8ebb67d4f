// Batches of matrices as the functions of dense linear algebra take them: N, double or a complex
// number of two, row by row.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "complex.h"

namespace ocltensor::cpu {

inline double conjugate(double x) { return x; }
inline Number conjugate(const Number& x) { return std::conj(x); }
// |re| + |im|, by which LAPACK compares pivots.
inline double part_sum(double x) { return std::abs(x); }
inline double part_sum(const Number& x) { return std::abs(x.real()) + std::abs(x.imag()); }
inline bool is_finite(double x) { return std::isfinite(x); }
inline bool is_finite(const Number& x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}
// A number of size 1 in the direction of x, which is not 0.
template <typename N>
N direction(const N& x) {
  return x / std::abs(x);
}

template <typename N>
std::vector<N> read_as(const View& view) {
  if constexpr (std::is_same_v<N, Number>)
    return read_numbers(view);
  else
    return read<N>(view);
}
inline void write_as(const View& view, const std::vector<double>& values) { write(view, values); }
inline void write_as(const View& view, const std::vector<Number>& values) {
  write_numbers(view, values);
}

// Dense row-major copies of a batch of matrices, possibly broadcast.
template <typename N>
struct Matrices {
  std::vector<N> values;
  int64_t rows, columns;

  Matrices(const View& view, const Dims& batch) : Matrices(broadcast_to(view, batch)) {}
  explicit Matrices(const View& view)
      : values(read_as<N>(view)),
        rows(view.sizes[view.sizes.size() - 2]),
        columns(view.sizes.back()) {}
  Matrices(int64_t count, int64_t rows, int64_t columns)
      : values(static_cast<size_t>(count * rows * columns)), rows(rows), columns(columns) {}
  N* operator[](int64_t i) { return values.data() + i * rows * columns; }

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

// The rows of operators whose functions for real numbers and for complex ones come from the same
// templates.
template <size_t n>
constexpr std::array<CpuOperator, n> for_both(std::array<CpuOperator, n> real,
                                              const std::array<CpuOperator, n>& complex) {
  for (size_t i = 0; i < n; ++i) real[i].run_complex = complex[i].run;
  return real;
}

}  // namespace ocltensor::cpu
