// What the numbers of a product are, and the end of a product or a convolution: what becomes of its
// sums before they are stored (kernels/include/epilogue.h).
#pragma once

#include <optional>

#include "ocltensor/dtype.h"
#include "ocltensor/scalar.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::matmul {

// A batch of matrices in memory; strides in elements, 0 where they repeat.
struct Matrix {
  tb_address address;
  int64_t batch, row, col;
};
inline Matrix transposed(const Matrix& m) { return {m.address, m.batch, m.col, m.row}; }

// The types of a product's matrices. Of two factors the one of floating point, if there is one,
// says what is summed in (kernels/include/accumulator.h).
struct Types {
  DType a, b, result;
  DType self;  // of what is added

  Types() : Types(DType::Float32) {}
  Types(DType all) : Types(all, all, all, all) {}  // NOLINT: implicit on purpose
  Types(DType of_a, DType of_b, DType of_result, DType of_self)
      : a(of_a), b(of_b), result(of_result), self(of_self) {}
  bool alike() const { return a == b && a == result && a == self; }
  DType of_sums() const { return is_floating(b) ? b : a; }
  bool operator==(const Types&) const = default;
};
inline Types transposed(const Types& t) { return {t.b, t.a, t.result, t.self}; }

// result = formula(alpha * scales * sums + beta * self). Self may be the memory of the result; what
// it repeats (a bias), or the scales (of rows, columns, or all), has strides of 0.
struct Epilogue {
  Scalar alpha = 1;
  Scalar beta = 0;
  std::optional<Matrix> self;
  struct Scales {
    DType type;
    Matrix at;  // without a batch
  };
  std::optional<Scales> scales;
  const elementwise::Formula* formula = nullptr;  // of float results; in `a`

  // Adds `matrix` as it is.
  void add(const Matrix& matrix) { self = matrix, beta = 1; }
  // More than alpha and self, which every algorithm takes.
  bool has_more() const { return scales.has_value() || formula != nullptr; }
};
inline Epilogue transposed(Epilogue e) {
  if (e.self) e.self = transposed(*e.self);
  if (e.scales) e.scales->at = transposed(e.scales->at);
  return e;
}

}  // namespace ocltensor::opencl::matmul
