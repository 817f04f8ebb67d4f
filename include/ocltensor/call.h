// Argument types of the operators' C++ functions (ops.h), and the boxed call by name. The argument
// types refer to the caller's values without owning them: use them as parameters only.
#pragma once

#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ocltensor/generator.h"
#include "ocltensor/tensor.h"

namespace ocltensor {

struct Operator;

// A tensor, or a number that keeps its Python kind for type promotion.
class TensorOrScalar {
 public:
  TensorOrScalar(const Tensor& tensor) : tensor_(&tensor), number_(0) {}  // NOLINT: implicit
  TensorOrScalar(Scalar number) : number_(number) {}                      // NOLINT
  template <typename T>
  requires std::is_arithmetic_v<T> TensorOrScalar(T v) : number_(widen(v)) {}  // NOLINT
  const Tensor* tensor() const { return tensor_; }
  Scalar number() const { return number_; }
  bool is_none() const { return none_; }

 protected:
  struct None {};
  explicit TensorOrScalar(None) : number_(0), none_(true) {}

 private:
  template <typename T>
  static Scalar widen(T v) {
    if constexpr (std::is_same_v<T, bool>)
      return v;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(v);
    else
      return static_cast<double>(v);
  }
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
  OptionalTensor(std::nullopt_t) {}                           // NOLINT: implicit, like the others
  OptionalTensor(const Tensor& tensor) : tensor_(&tensor) {}  // NOLINT
  OptionalTensor(const std::optional<Tensor>& tensor)         // NOLINT
      : tensor_(tensor ? &*tensor : nullptr) {}
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
  TensorList(std::initializer_list<Tensor> v) : data_(std::data(v)), size_(v.size()) {}  // NOLINT
  TensorList(const std::vector<Tensor>& v) : data_(v.data()), size_(v.size()) {}         // NOLINT
  TensorList(std::span<const Tensor> v) : data_(v.data()), size_(v.size()) {}            // NOLINT
  std::span<const Tensor> span() const { return {data_, size_}; }

 private:
  const Tensor* data_;
  size_t size_;
};

struct CallOptions {
  bool in_place = false;         // outs[0] is an input; its shape must not change
  std::optional<Device> device;  // for operators without tensor arguments; default: the CPU
  std::optional<DType> dtype;    // of the result of an operator without tensor arguments
};

// An argument of the boxed call, with one alternative per type of a schema. monostate is None.
using Value =
    std::variant<std::monostate, bool, int64_t, double, std::string, DType, Tensor,
                 std::vector<Tensor>, std::vector<int64_t>, std::vector<double>, Generator>;
using NamedValue = std::pair<std::string, Value>;

// Runs an operator by its name, e.g. call("add.out", {a, b}). Missing arguments take the schema's
// defaults. `outs` are undefined tensors, or tensors to write into. The results are returned.
// Error TB_E_INVALID: unknown operator or argument, missing argument.
OCLTENSOR_API std::vector<Tensor> call(std::string_view name, std::span<const Value> args,
                                       std::span<const NamedValue> named = {},
                                       std::span<const Tensor> outs = {},
                                       const CallOptions& options = {});
inline std::vector<Tensor> call(std::string_view name, std::initializer_list<Value> args,
                                const CallOptions& options = {}) {
  return call(name, std::span(args.begin(), args.size()), {}, {}, options);
}
// The schema text of every operator, in the order of the operator table.
OCLTENSOR_API std::vector<std::string> operator_schemas();

}  // namespace ocltensor
