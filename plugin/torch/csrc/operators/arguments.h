// The arguments of one ATen call in the plugin's form: tb_values that refer to borrowed tensors and
// lists. Everything lives as long as the Arguments object; calls of usual size allocate nothing.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <list>
#include <optional>
#include <string_view>
#include <vector>

#include "base/value.h"
#include "runtime/plugin.h"

namespace torch_ocl {

// Describes a dense ocl tensor to the plugin. Inputs are read through const_data_ptr, outputs
// through mutable_data_ptr, so that copy-on-write tensors are separated only when they are written.
tb_tensor describe_input(const at::Tensor& tensor);
TORCH_OCL_API tb_tensor describe_output(const at::Tensor& tensor);
// A lazily conjugated or negated tensor's memory, which kernels must not write to without resolving
// the mark.
tb_tensor describe_lazy(const at::Tensor& tensor);
ocltensor::DType dtype_of(at::ScalarType type);  // NotImplementedError for types that DType lacks
at::ScalarType scalar_type_of(ocltensor::DType type);

class Arguments {
 public:
  static constexpr size_t kMost = 20;

  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  void add(const at::Tensor& tensor);
  void add(const std::optional<at::Tensor>& tensor);
  void add(at::ITensorListRef tensors);
  void add(at::TensorList tensors);
  void add(const c10::List<std::optional<at::Tensor>>& tensors);
  void add(const at::Scalar& number);
  void add(const std::optional<at::Scalar>& number);
  void add(bool value);
  void add(int64_t value);
  void add(double value);
  void add(const c10::SymInt& value) { add(value.guard_int(__FILE__, __LINE__)); }
  void add(c10::string_view text);
  void add(at::ScalarType type);
  void add(at::IntArrayRef values);
  void add(c10::SymIntArrayRef values) { add(C10_AS_INTARRAYREF_SLOW(values)); }
  void add(at::ArrayRef<double> values);
  void add(const std::optional<at::Generator>& generator) { generator_ = generator, random(); }
  template <size_t N>
  void add(const std::array<bool, N>& values) {
    add_bools(values.data(), N);
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    if (value.has_value())
      add(*value);
    else
      none();
  }
  void add(const at::OptionalIntArrayRef& values) {
    if (values.has_value())
      add(*values);
    else
      none();
  }
  void add(const at::OptionalSymIntArrayRef& values) {
    if (values.has_value())
      add(*values);
    else
      none();
  }
  void none() { next() = {}; }

  // To be called after the last add(). Returns the device of the tensors, or `fallback` if there
  // are none. With `take_scalars` scalar tensors are moved there, too; any other CPU tensor is an
  // error that names the operator.
  c10::DeviceIndex settle(const char* name, c10::DeviceIndex fallback, bool take_scalars);

  // After settle(): converts the tensor at this position; false if it was not added as one on ocl.
  bool convert(size_t position, at::ScalarType type);
  // After settle(): a tensor on the same device in place of the number at this position.
  void replace(size_t position, const at::Tensor& tensor);

  std::span<const tb_value> values() const { return {values_.data(), count_}; }
  c10::ArrayRef<const at::Tensor*> tensors() const { return inputs_; }
  // The descriptions of the first list that was added.
  std::span<const tb_tensor* const> first_list() const { return lists_.front().pointers; }

 private:
  tb_value& next() {
    TORCH_INTERNAL_ASSERT(count_ < kMost);
    return values_[count_++] = {};
  }
  void random();
  void set_number(tb_value& value, const at::Scalar& number);
  void add_bools(const bool* values, size_t count);
  struct List {
    std::vector<tb_tensor> tensors;
    std::vector<const tb_tensor*> pointers;  // null: absent
    std::vector<uint8_t> bools;
    std::vector<at::Tensor> kept;
    void add(const tb_tensor& tensor);
  };
  List& new_list(size_t count);
  void add_list(const List& list);
  template <typename Tensors>
  void add_tensors(const Tensors& tensors);
  void set_tensor(tb_value& value, const at::Tensor& tensor);
  void take_scalar_tensor(const at::Tensor& scalar, tb_value& value, c10::DeviceIndex device);

  std::array<tb_value, kMost> values_;
  size_t count_ = 0;
  std::array<tb_tensor, kMost> tensors_;
  size_t tensor_count_ = 0;
  c10::SmallVector<const at::Tensor*, 8> inputs_;  // ocl tensors, for overlap checks
  std::list<at::Tensor> resolved_;                 // copies of conjugated and negated inputs
  std::vector<std::pair<size_t, const at::Tensor*>> scalar_tensors_;  // CPU tensors by position
  std::vector<at::Tensor> kept_;
  std::array<std::array<double, 2>, 4> complex_;  // the numbers that TB_COMPLEX values point to
  size_t complex_count_ = 0;
  std::optional<at::Generator> generator_;
  size_t generator_at_ = kMost;
  std::list<List> lists_;  // a list, so that addresses stay; an empty one costs nothing
};

}  // namespace torch_ocl
