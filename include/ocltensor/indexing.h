// Indexing with brackets, by the rules of NumPy and PyTorch.
//
//   a[2]                        the third row: a view
//   a[slice(1, 5)]              rows 1 to 4: a view
//   a[{slice(1, 5), 0}]         their first elements: a view
//   a[{"...", 0}]               the first element of each last dimension: a view
//   a[mask], a[{0, positions}]  elements that a tensor names: a copy
//
// An assignment to what brackets name writes to `a`, also where reading makes a copy:
//   a[mask] = 0;  a[{slice(1, 5)}] = b;  a[{0, positions}] += 1;
// Where two entries of `positions` are equal, one of the values is kept (index_put; to add them
// all: index_put_ with accumulate).
//
// Cost: `a[mask] = number` is masked_fill_, one pass. Any other use of a mask first looks for its
// positions (nonzero) and waits for the device, since their number is the result's size. A tensor
// between braces is read before it is written; `a[positions] = b` alone only writes.
// Errors: TB_E_INVALID for what does not fit and for a position of C++ out of range, TB_E_INDEX for
// one in a tensor, which a device raises when it is waited for.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ocltensor/tensor.h"

namespace ocltensor {

// Elements start, start + step, ... before stop of a dimension; step > 0.
struct Slice {
  Slice() = default;  // all of it
  Slice(std::optional<int64_t> first, std::optional<int64_t> end = {}, int64_t by = 1)
      : start(first), stop(end), step(by) {}
  std::optional<int64_t> start, stop;
  int64_t step = 1;
};

inline Slice slice(std::optional<int64_t> first = {}, std::optional<int64_t> end = {},
                   int64_t by = 1) {
  return {first, end, by};
}

// One entry between brackets.
class OCLTENSOR_API Index {
 public:
  enum class Kind : uint8_t { Position, Range, Rest, NewDimension, Elements };
  template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Index(T position)  // NOLINT: implicit
      : kind_(Kind::Position), range_(static_cast<int64_t>(position)) {}
  Index(Slice range) : kind_(Kind::Range), range_(range) {}  // NOLINT
  Index(const char* text);  // NOLINT: "..." is all dimensions that no other entry names
  Index(std::nullopt_t) : kind_(Kind::NewDimension) {}  // NOLINT: a new dimension of size 1
  // Positions (any integer type but uint8), or a mask (bool) over as many dimensions as it has.
  Index(Tensor elements) : kind_(Kind::Elements), elements_(std::move(elements)) {}  // NOLINT

  Kind kind() const { return kind_; }
  const Slice& range() const { return range_; }  // of a position: its start
  const Tensor& elements() const { return elements_; }

 private:
  Kind kind_;
  Slice range_;
  Tensor elements_;
};

// What brackets name: a tensor to read, and what an assignment writes to.
class OCLTENSOR_API Indexed : public Tensor {
 public:
  explicit Indexed(Tensor view) : Tensor(std::move(view)) {}
  Indexed(Tensor base, std::vector<Tensor> indices);
  Indexed(const Indexed&) = default;
  Indexed(Indexed&&) noexcept = default;
  ~Indexed() = default;

  // Of brackets themselves, not of a variable that was initialised by them.
  Indexed& operator=(const Tensor& value) &&;
  Indexed& operator=(const Scalar& value) &&;
  Indexed& operator=(const Indexed& value) && {
    return std::move(*this) = static_cast<const Tensor&>(value);
  }
  // The compound operators, generated: a[i] += b is a[i] = a[i] + b.
#include "ocltensor/compound.h"

 private:
  Tensor base_;                  // undefined: this is a view
  std::vector<Tensor> indices_;  // one a dimension of base_; undefined: all of the dimension
};

// The elements that a tensor names, a[mask] or a[positions]: read where a tensor is wanted, or
// written to. For use within an expression: `Tensor b = a[mask]` keeps a copy, `auto b = a[mask]`
// is of no use.
class OCLTENSOR_API Selected {
 public:
  Selected(Tensor base, Tensor index);
  Selected(const Selected&) = delete;
  ~Selected() = default;
  operator Tensor() && { return read(); }  // NOLINT: implicit

  Selected& operator=(const Tensor& value) &&;
  Selected& operator=(const Scalar& value) &&;
  // NOLINTNEXTLINE(performance-noexcept-move-constructor): it copies elements, which may fail
  Selected& operator=(Selected&& value) && { return std::move(*this) = value.read(); }
#include "ocltensor/compound.h"

  // ---- what Tensor has, of a copy of the elements
  Dims sizes() && { return read().sizes(); }
  int64_t dim() && { return read().dim(); }
  int64_t size(int64_t dim) && { return read().size(dim); }
  int64_t numel() && { return read().numel(); }
  DType dtype() && { return base_.dtype(); }
  Device device() && { return base_.device(); }
  Tensor view(const Dims& sizes) && { return read().view(sizes); }
  Tensor reshape(const Dims& sizes) && { return read().reshape(sizes); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) && { return read().flatten(first, last); }
  Tensor slice(int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
               int64_t step = 1) && {
    return read().slice(dim, start, end, step);
  }
  Tensor narrow(int64_t dim, int64_t start, int64_t length) && {
    return read().narrow(dim, start, length);
  }
  Tensor select(int64_t dim, int64_t index) && { return read().select(dim, index); }
  Tensor transpose(int64_t a, int64_t b) && { return read().transpose(a, b); }
  Tensor t() && { return read().t(); }
  Tensor permute(const Dims& dims) && { return read().permute(dims); }
  Tensor expand(const Dims& sizes) && { return read().expand(sizes); }
  Tensor squeeze() && { return read().squeeze(); }
  Tensor squeeze(int64_t dim) && { return read().squeeze(dim); }
  Tensor unsqueeze(int64_t dim) && { return read().unsqueeze(dim); }
  Tensor operator[](int64_t index) && { return read()[index]; }
  Tensor clone() && { return read(); }
  Tensor detach() && { return read().detach(); }
  Tensor to(DType dtype) && { return read().to(dtype); }
  Tensor to(Device device, bool non_blocking = false) && { return read().to(device, non_blocking); }
  Tensor cpu() && { return read().cpu(); }
  Scalar item() && { return read().item(); }
  template <typename T>
  T item() && {
    return read().item<T>();
  }
  template <typename T>
  std::vector<T> to_vector() && {
    return read().to_vector<T>();
  }
  std::string text() && { return read().text(); }
#include "ocltensor/selected.h"

  // Within the expression: the elements, a copy that lives as long as this object.
  const Tensor& read();

 private:
  std::vector<Tensor> positions() const;
  Tensor base_, index_, read_;
};

inline TensorOrScalar::TensorOrScalar(Selected&& elements)
    : tensor_(&elements.read()), number_(0) {}
inline OptionalTensor::OptionalTensor(Selected&& elements) : tensor_(&elements.read()) {}

template <std::same_as<Slice> T>
Indexed Tensor::operator[](const T& range) const {
  return (*this)[{Index(range)}];
}

}  // namespace ocltensor
