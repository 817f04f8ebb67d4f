// Indexing with brackets, by the rules of NumPy and PyTorch.
//
//   a[2]                        the third row: a view
//   a[{slice(1, 5), "..."}]     rows 1 to 4: a view
//   a[{"...", 0}]               the first element of each last dimension: a view
//   a[mask], a[{0, positions}]  elements that a tensor names: a copy
//
// An assignment to what brackets name writes to `a`, also where reading makes a copy:
//   a[mask] = 0;  a[{slice(1, 5)}] = b;  a[{0, positions}] += 1;
// Where two entries of `positions` are equal, one of the values is kept (index_put; to add them
// all: index_put_ with accumulate). Errors: TB_E_INVALID for what is out of range or does not fit.
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

}  // namespace ocltensor
