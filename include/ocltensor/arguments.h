// Argument types of operators in C++. They refer to the caller's values without owning them: use
// them as parameters only.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "ocltensor/dims.h"
#include "ocltensor/scalar.h"

namespace ocltensor {

class Tensor;
class Selected;

// How a loss is put together from its elements' losses; the values are ATen's.
enum class Reduction : int64_t { None, Mean, Sum };
// How grid samplers read between elements.
enum class Interpolation : int64_t { Bilinear, Nearest, Bicubic };
// What grid samplers read outside of the input.
enum class Padding : int64_t { Zeros, Border, Reflection };
// What a Fourier transform of n elements is multiplied by: 1, n^-1/2, 1/n.
enum class FftNorm : int64_t { None, ByRootN, ByN };

// A tensor, or a number that keeps its Python kind for type promotion.
class TensorOrScalar {
 public:
  TensorOrScalar(const Tensor& tensor) : tensor_(&tensor), number_(0) {}  // NOLINT: implicit
  inline TensorOrScalar(Selected&& elements);                             // NOLINT
  TensorOrScalar(Scalar number) : number_(number) {}                      // NOLINT
  template <typename T>
  requires std::is_arithmetic_v<T> TensorOrScalar(T v) : number_(v) {}  // NOLINT
  const Tensor* tensor() const { return tensor_; }
  const Scalar& number() const { return number_; }  // a complex one is passed by address
  bool is_none() const { return none_; }

 protected:
  struct None {};
  explicit TensorOrScalar(None) : number_(0), none_(true) {}

 private:
  const Tensor* tensor_ = nullptr;
  Scalar number_;
  bool none_ = false;
};

class OptionalTensorOrScalar : public TensorOrScalar {
 public:
  using TensorOrScalar::TensorOrScalar;
  OptionalTensorOrScalar(std::nullopt_t) : TensorOrScalar(None{}) {}  // NOLINT: implicit
};

class OptionalTensor {
 public:
  OptionalTensor() = default;
  OptionalTensor(std::nullopt_t) {}                            // NOLINT: implicit, like the others
  OptionalTensor(const Tensor& tensor) : tensor_(&tensor) {}   // NOLINT
  inline OptionalTensor(const std::optional<Tensor>& tensor);  // NOLINT
  inline OptionalTensor(Selected&& elements);                  // NOLINT
  const Tensor* tensor() const { return tensor_; }

 private:
  const Tensor* tensor_ = nullptr;
};

// Integers from {1, 2}, a Dims, a std::vector, a span or one number; std::nullopt is None.
class IntList {
 public:
  IntList() = default;
  IntList(std::nullopt_t) : none_(true) {}  // NOLINT: implicit
  IntList(std::initializer_list<int64_t> v) : data_(std::data(v)), size_(v.size()) {}  // NOLINT
  IntList(std::span<const int64_t> v) : data_(v.data()), size_(v.size()) {}            // NOLINT
  IntList(const std::vector<int64_t>& v) : data_(v.data()), size_(v.size()) {}         // NOLINT
  IntList(const Dims& v) : data_(v.data()), size_(v.size()) {}                         // NOLINT
  template <typename T>
  requires std::is_integral_v<T> IntList(T v)
      : size_(1), single_(static_cast<int64_t>(v)) {}  // NOLINT
  std::span<const int64_t> span() const {
    return {data_ == nullptr && size_ == 1 ? &single_ : data_, size_};
  }
  bool is_none() const { return none_; }

 private:
  const int64_t* data_ = nullptr;
  size_t size_ = 0;
  int64_t single_ = 0;
  bool none_ = false;
};

class BoolList {
 public:
  BoolList(std::initializer_list<bool> v) : data_(std::data(v)), size_(v.size()) {}  // NOLINT
  BoolList(std::span<const bool> v) : data_(v.data()), size_(v.size()) {}            // NOLINT
  std::span<const bool> span() const { return {data_, size_}; }

 private:
  const bool* data_;
  size_t size_;
};

// Tensors. Where the schema says Tensor?[], an undefined one is an absent entry.
class TensorList {
 public:
  inline TensorList(std::initializer_list<Tensor> v);    // NOLINT: implicit
  inline TensorList(const std::vector<Tensor>& v);       // NOLINT
  TensorList(std::span<const Tensor> v) : values_(v) {}  // NOLINT
  std::span<const Tensor> span() const { return values_; }

 private:
  std::span<const Tensor> values_;
};

}  // namespace ocltensor
