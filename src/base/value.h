// Typed access to an operator call's arguments (tb_value) as the ABI passes them; used by inference
// and by every implementation of an operator, on any device.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ocltensor/dims.h"
#include "ocltensor/scalar.h"
#include "schema.h"

namespace ocltensor {

// Borrowed view of a tensor argument.
class TensorView {
 public:
  explicit TensorView(const tb_tensor& tensor) : tensor_(&tensor), dtype_(from_abi(tensor.dtype)) {}
  DType dtype() const { return dtype_; }
  int64_t ndim() const { return tensor_->ndim; }
  std::span<const int64_t> sizes() const { return {tensor_->sizes, tensor_->ndim}; }
  std::span<const int64_t> strides() const { return {tensor_->strides, tensor_->ndim}; }
  int64_t size(int64_t dim) const { return tensor_->sizes[wrap_dim(dim, ndim())]; }
  int64_t stride(int64_t dim) const { return tensor_->strides[wrap_dim(dim, ndim())]; }
  int64_t numel() const { return ocltensor::numel(sizes()); }
  int64_t itemsize() const { return size_of(dtype_); }
  bool is_contiguous() const { return ocltensor::is_contiguous(sizes(), strides()); }
  tb_address address() const { return tensor_->address; }
  const tb_tensor& raw() const { return *tensor_; }
  // Host pointer, where addresses are host addresses (the CPU backend).
  template <typename T>
  T* host() const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(tensor_->address));  // NOLINT
  }

 private:
  const tb_tensor* tensor_;
  DType dtype_;
};

// Borrowed view of a list argument without absent tensors. Views of the tensors are made on access,
// so that a list of any length needs no memory.
class TensorViews {
 public:
  class Iterator {
   public:
    explicit Iterator(const tb_tensor* const* at) : at_(at) {}
    TensorView operator*() const { return TensorView(**at_); }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(const Iterator&) const = default;

   private:
    const tb_tensor* const* at_;
  };
  explicit TensorViews(std::span<const tb_tensor* const> tensors) : tensors_(tensors) {}
  size_t size() const { return tensors_.size(); }
  bool empty() const { return tensors_.empty(); }
  TensorView operator[](size_t i) const { return TensorView(*tensors_[i]); }
  Iterator begin() const { return Iterator(tensors_.data()); }
  Iterator end() const { return Iterator(tensors_.data() + tensors_.size()); }

 private:
  std::span<const tb_tensor* const> tensors_;
};

// The inputs of one call, by name. Accessors throw TB_E_INVALID, naming operator and argument, if
// the value is not what the schema says, and TB_E_INTERNAL for a name that the operator does not
// have.
class Args {
 public:
  Args(const Schema& schema, std::span<const tb_value> values)
      : schema_(&schema), values_(values) {}
  const Schema& schema() const { return *schema_; }
  size_t size() const { return values_.size(); }
  // The name of the input at position `i`, for code that loops over all inputs.
  Arg nth(size_t i) const { return schema_->inputs[i].arg.value(); }
  // True if the operator has an input of this name.
  bool has(Arg a) const { return schema_->positions[static_cast<size_t>(a)] >= 0; }
  const tb_value& value(Arg a) const {
    const int8_t position = schema_->positions[static_cast<size_t>(a)];
    if (position < 0) [[unlikely]]
      lacking(a);
    return values_[static_cast<size_t>(position)];
  }

  bool is_none(Arg a) const { return value(a).tag == TB_NONE; }
  bool is_tensor(Arg a) const { return value(a).tag == TB_TENSOR; }
  bool is_number(Arg a) const { return value(a).tag >= TB_BOOL && value(a).tag <= TB_COMPLEX; }
  TensorView tensor(Arg a) const;
  std::optional<TensorView> optional_tensor(Arg a) const;
  std::vector<std::optional<TensorView>> tensors(Arg a) const;
  TensorViews whole_list(Arg a) const;  // TB_E_INVALID where a tensor is absent
  Scalar scalar(Arg a) const;           // TB_UNSUPPORTED for a complex number
  Scalar number(Arg a) const;           // complex ones, too
  std::optional<Scalar> optional_scalar(Arg a) const;
  int64_t integer(Arg a) const;
  std::optional<int64_t> optional_integer(Arg a) const;
  double real(Arg a) const;  // accepts INT and BOOL too
  std::optional<double> optional_real(Arg a) const;
  bool boolean(Arg a) const;
  std::optional<bool> optional_boolean(Arg a) const;
  std::span<const int64_t> ints(Arg a) const;  // NONE gives an empty list; INT a list of one
  std::span<const double> reals(Arg a) const;  // NONE gives an empty list
  std::vector<bool> booleans(Arg a) const;
  std::string_view string(Arg a) const;
  std::optional<DType> optional_dtype(Arg a) const;
  tb_generator generator(Arg a) const;  // NULL for NONE

 private:
  [[noreturn]] void lacking(Arg a) const;
  [[noreturn]] void mismatch(Arg a, const char* wanted) const;
  const Schema* schema_;
  std::span<const tb_value> values_;
};

}  // namespace ocltensor
