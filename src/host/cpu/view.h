// Strided views that own their shape, and reading or writing a whole view as one dense row-major
// buffer. Operators that are not pointwise compute on such buffers, so that only this file handles
// strides.
#pragma once

#include <vector>

#include "base/iteration.h"
#include "base/value.h"
#include "element.h"

namespace ocltensor::cpu {

struct View {
  std::byte* data = nullptr;
  DType type = DType::Float32;
  Dims sizes;
  Dims strides;

  View() = default;
  View(TensorView t)  // NOLINT: implicit on purpose
      : data(t.host<std::byte>()), type(t.dtype()), sizes(t.sizes()), strides(t.strides()) {}
  int64_t numel() const { return ocltensor::numel(sizes); }
  int64_t ndim() const { return static_cast<int64_t>(sizes.size()); }
  std::byte* at(int64_t element) const { return data + element * size_of(type); }

  // The same elements with the dimensions of `mask` moved behind the others.
  View with_last(DimMask mask) const;
  View with_last_dim(int64_t dim) const;  // a scalar gets its one dimension
  View broadcast_to(std::span<const int64_t> target) const;
  View narrow(int64_t dim, int64_t start, int64_t length) const;
};

// Calls body(offsets, count) for runs along the innermost dimension; offsets are in elements, one
// per operand.
template <typename Body>
void for_each_run(const IterationSpace& space, Body&& body) {
  if (space.numel == 0) return;
  const size_t operands = space.strides.size();
  std::vector<int64_t> offsets(operands, 0);
  Dims index(space.rank(), 0);
  while (true) {
    body(offsets.data(), space.sizes[0]);
    size_t d = 1;
    for (; d < space.rank(); ++d) {
      for (size_t k = 0; k < operands; ++k) offsets[k] += space.strides[k][d];
      if (++index[d] < space.sizes[d]) break;
      for (size_t k = 0; k < operands; ++k) offsets[k] -= space.strides[k][d] * space.sizes[d];
      index[d] = 0;
    }
    if (d == space.rank()) return;
  }
}

template <typename T>
void read(const View& from, T* to) {
  const Dims strides[] = {contiguous_strides(from.sizes), from.strides};
  const IterationSpace space = make_iteration(from.sizes, strides);
  for_each_run(space, [&](const int64_t* at, int64_t count) {
    load(to + at[0], from.at(at[1]), from.type, space.strides[1][0], count);
  });
}

template <typename T>
std::vector<T> read(const View& from) {
  std::vector<T> buffer(static_cast<size_t>(from.numel()));
  read(from, buffer.data());
  return buffer;
}

template <typename T>
void write(const View& to, const T* from) {
  const Dims strides[] = {contiguous_strides(to.sizes), to.strides};
  const IterationSpace space = make_iteration(to.sizes, strides);
  for_each_run(space, [&](const int64_t* at, int64_t count) {
    store(to.at(at[1]), to.type, space.strides[1][0], from + at[0], count);
  });
}

template <typename T>
void write(const View& to, const std::vector<T>& from) {
  write(to, from.data());
}

// Calls f with a value of the type that `type` is computed in.
template <typename F>
void with_compute(DType type, F&& f) {
  if (computes_in_double(type))
    f(double{});
  else
    f(int64_t{});
}

// A number in the compute type T.
template <typename T>
T number(Scalar s) {
  if constexpr (std::is_same_v<T, double>)
    return s.as_double();
  else
    return s.as_int();
}

}  // namespace ocltensor::cpu
