// Packs ATen values into tb_values.
#include "arguments.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/zeros.h>

#include "base/call_plan.h"
#include "default_type.h"
#include "runtime/generator.h"

namespace torch_ocl {
namespace {

using ocltensor::DType;

constexpr std::pair<at::ScalarType, DType> kTypes[] = {
    {at::kBool, DType::Bool},
    {at::kByte, DType::UInt8},
    {at::kChar, DType::Int8},
    {at::kShort, DType::Int16},
    {at::kInt, DType::Int32},
    {at::kLong, DType::Int64},
    {at::kHalf, DType::Float16},
    {at::kBFloat16, DType::BFloat16},
    {at::kFloat, DType::Float32},
    {at::kDouble, DType::Float64},
    {at::kComplexFloat, DType::Complex64},
    {at::kComplexDouble, DType::Complex128},
    {at::kComplexHalf, DType::Complex32},
    {at::kUInt16, DType::UInt16},
    {at::kUInt32, DType::UInt32},
    {at::kUInt64, DType::UInt64},
    {at::kFloat8_e4m3fn, DType::Float8E4M3FN},
    {at::kFloat8_e5m2, DType::Float8E5M2},
    {at::kFloat8_e4m3fnuz, DType::Float8E4M3FNUZ},
    {at::kFloat8_e5m2fnuz, DType::Float8E5M2FNUZ},
    {at::kFloat8_e8m0fnu, DType::Float8E8M0FNU},
};

// Indexed by ATen's number of a type: fast, as every tensor of every call is looked up.
constexpr auto kTypeOf = [] {
  std::array<std::optional<DType>, static_cast<size_t>(at::ScalarType::NumOptions)> table{};
  for (const auto& [theirs, ours] : kTypes) table[static_cast<size_t>(theirs)] = ours;
  return table;
}();

tb_tensor describe(const at::Tensor& tensor, const void* data, const void* base) {
  tb_tensor t;
  t.struct_size = sizeof t;
  t.flags = 0;
  t.address = reinterpret_cast<uintptr_t>(data);
  t.base = reinterpret_cast<uintptr_t>(base);
  t.base_bytes = tensor.storage().nbytes();
  t.dtype = ocltensor::to_abi(dtype_of(tensor.scalar_type()));
  t.ndim = static_cast<uint32_t>(tensor.dim());
  t.sizes = tensor.sizes().data();
  t.strides = tensor.strides().data();
  t.next = nullptr;
  return t;
}

// Refuses tensors that no kernel can take.
void check_plain(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided, "ocl: tensors of layout ",
                              tensor.layout(), " are not supported");
  TORCH_CHECK_NOT_IMPLEMENTED(!tensor.is_conj() && !tensor.is_neg(),
                              "ocl: lazily conjugated or negated tensors are not supported; call "
                              "resolve_conj() or resolve_neg() first");
  TORCH_CHECK(!tensor._is_zerotensor(),
              "ZeroTensors are immutable; clone() one to get a tensor that can be written to");
}

// Conjugated and negated views, and zeros without memory, which forward-mode derivatives have.
bool is_lazy(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet lazy(
      {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor});
  return tensor.key_set().has_any(lazy);
}
// The same numbers in a plain tensor. Operators to which PyTorch passes lazy ones (matrix products,
// dot) would otherwise read the numbers before conjugation, or memory that is not there.
at::Tensor resolved(const at::Tensor& tensor) {
  if (tensor._is_zerotensor()) return at::zeros({}, tensor.options()).expand(tensor.sizes());
  return tensor.resolve_conj().resolve_neg();
}

}  // namespace

DType dtype_of(at::ScalarType type) {
  const auto index = static_cast<size_t>(type);
  if (index < kTypeOf.size() && kTypeOf[index]) [[likely]]
    return *kTypeOf[index];
  TORCH_CHECK_NOT_IMPLEMENTED(false, "ocl: tensors of dtype ", type, " are not supported");
}

at::ScalarType scalar_type_of(DType type) {
  for (const auto& [theirs, ours] : kTypes)
    if (ours == type) return theirs;
  TORCH_INTERNAL_ASSERT(false);
}

tb_tensor describe_input(const at::Tensor& tensor) {
  check_plain(tensor);
  return describe(tensor, tensor.const_data_ptr(), tensor.storage().data());
}

tb_tensor describe_output(const at::Tensor& tensor) {
  check_plain(tensor);
  void* const data = tensor.mutable_data_ptr();  // first: it may replace a lazily copied storage
  return describe(tensor, data, tensor.storage().data());
}

tb_tensor describe_lazy(const at::Tensor& tensor) {
  return describe(tensor, tensor.const_data_ptr(), tensor.storage().data());
}

void Arguments::add(const at::Tensor& tensor) {
  if (!tensor.defined()) return none();
  tb_value& value = next();
  if (tensor.device().type() != kOcl) {
    scalar_tensors_.emplace_back(count_ - 1, &tensor);
    return;
  }
  const at::Tensor* plain = &tensor;
  if (is_lazy(tensor)) plain = &resolved_.emplace_back(resolved(tensor));
  tensors_[tensor_count_] = describe_input(*plain);
  value.tag = TB_TENSOR;
  value.as.p = &tensors_[tensor_count_++];
  inputs_.push_back(plain);
}

void Arguments::add(const std::optional<at::Tensor>& tensor) {
  if (tensor.has_value())
    add(*tensor);
  else
    none();
}

// Memory for a list of `count` tensors, which never moves, as pointers lead to it.
Arguments::List& Arguments::new_list(size_t count) {
  List& list = lists_.emplace_back();
  list.tensors.reserve(count);
  list.pointers.reserve(count);
  return list;
}
void Arguments::List::add(const tb_tensor& tensor) {
  pointers.push_back(&tensors.emplace_back(tensor));
}
void Arguments::add_list(const List& list) {
  tb_value& value = next();
  value.tag = TB_TENSOR_LIST;
  value.count = static_cast<uint32_t>(list.pointers.size());
  value.as.p = list.pointers.data();
}

template <typename Tensors>
void Arguments::add_tensors(const Tensors& tensors) {
  List& list = new_list(tensors.size());
  inputs_.reserve(inputs_.size() + tensors.size());
  for (const at::Tensor& t : tensors) {
    TORCH_CHECK(t.device().type() == kOcl,
                "Expected all tensors to be on the same device, but found one on ", t.device(),
                " beside ocl");
    const at::Tensor* plain = &t;
    if (is_lazy(t)) plain = &resolved_.emplace_back(resolved(t));
    list.add(describe_input(*plain));
    inputs_.push_back(plain);
  }
  add_list(list);
}
void Arguments::add(at::ITensorListRef tensors) { add_tensors(tensors); }
void Arguments::add(at::TensorList tensors) { add_tensors(tensors); }

// Indices may be CPU tensors: they are copied to the device, as in CUDA.
void Arguments::add(const c10::List<std::optional<at::Tensor>>& tensors) {
  List& list = new_list(tensors.size());
  c10::Device device(kOcl, -1);
  for (const at::Tensor* t : inputs_) device = t->device();
  for (const std::optional<at::Tensor> item : tensors) {
    if (!item.has_value() || !item->defined()) {
      list.pointers.push_back(nullptr);
      continue;
    }
    list.kept.push_back(resolved(item->device().type() == kOcl ? *item : item->to(device)));
    list.add(describe_input(list.kept.back()));
  }
  add_list(list);
}

void Arguments::add(const at::Scalar& number) { set_number(next(), number); }
void Arguments::set_number(tb_value& value, const at::Scalar& number) {
  if (number.isComplex()) {
    TORCH_INTERNAL_ASSERT(complex_count_ < complex_.size());
    const c10::complex<double> parts = number.toComplexDouble();
    complex_[complex_count_] = {parts.real(), parts.imag()};
    value.tag = TB_COMPLEX;
    value.as.p = complex_[complex_count_++].data();
  } else if (number.isFloatingPoint()) {
    value.tag = TB_FLOAT;
    value.as.f = number.toDouble();
  } else {
    value.tag = number.isBoolean() ? TB_BOOL : TB_INT;
    value.as.i = number.isBoolean() ? number.toBool() : number.toLong();
  }
}
void Arguments::add(const std::optional<at::Scalar>& number) {
  if (number.has_value())
    add(*number);
  else
    none();
}
void Arguments::add(bool value) {
  tb_value& v = next();
  v.tag = TB_BOOL;
  v.as.i = value;
}
void Arguments::add(int64_t value) {
  tb_value& v = next();
  v.tag = TB_INT;
  v.as.i = value;
}
void Arguments::add(double value) {
  tb_value& v = next();
  v.tag = TB_FLOAT;
  v.as.f = value;
}
void Arguments::add(c10::string_view text) {
  tb_value& v = next();
  v.tag = TB_STRING;
  v.count = static_cast<uint32_t>(text.size());
  v.as.p = text.data();
}
void Arguments::add(at::ScalarType type) {
  tb_value& v = next();
  v.tag = TB_DTYPE;
  v.as.dtype = ocltensor::to_abi(dtype_of(type));
}
void Arguments::add(at::IntArrayRef values) {
  tb_value& v = next();
  v.tag = TB_INT_LIST;
  v.count = static_cast<uint32_t>(values.size());
  v.as.p = values.data();
}
void Arguments::add(at::ArrayRef<double> values) {
  tb_value& v = next();
  v.tag = TB_FLOAT_LIST;
  v.count = static_cast<uint32_t>(values.size());
  v.as.p = values.data();
}
void Arguments::add_bools(const bool* values, size_t count) {
  List& list = lists_.emplace_back();
  list.bools.assign(values, values + count);
  tb_value& v = next();
  v.tag = TB_BOOL_LIST;
  v.count = static_cast<uint32_t>(count);
  v.as.p = list.bools.data();
}

void Arguments::random() {
  generator_at_ = count_;
  next().tag = TB_GENERATOR;  // the handle depends on the device: settle() fills it in
}

void Arguments::set_tensor(tb_value& value, const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(tensor_count_ < kMost);
  kept_.push_back(tensor);
  tensors_[tensor_count_] = describe_input(tensor);
  value.tag = TB_TENSOR;
  value.as.p = &tensors_[tensor_count_++];
}

// Passes a scalar tensor as a number where base/call_plan.h says so, else as a tensor on the
// device. A wrapped number is always passed as a number. That a number with a fraction promotes
// integers as a float32 tensor does holds for the default type float32 alone.
void Arguments::take_scalar_tensor(const at::Tensor& scalar, tb_value& value,
                                   c10::DeviceIndex device) {
  ocltensor::ScalarTensorRule rule;
  for (const at::Tensor* t : inputs_) rule.add(t->dim(), dtype_of(t->scalar_type()));
  const at::ScalarType type = scalar.scalar_type();
  const bool is_number =
      scalar.unsafeGetTensorImpl()->is_wrapped_number() ||
      ((default_is_float32() || at::isIntegralType(type, true)) &&
       rule.is_number(type == at::kComplexDouble ? DType::Float64 : dtype_of(type)));
  if (!is_number) return set_tensor(value, scalar.to(c10::Device(kOcl, device)));
  set_number(value, resolved(scalar).item());
}

bool Arguments::convert(size_t position, at::ScalarType type) {
  tb_value& value = values_[position];
  if (value.tag != TB_TENSOR) return false;
  const auto index = static_cast<size_t>(static_cast<const tb_tensor*>(value.as.p) - &tensors_[0]);
  if (index >= inputs_.size()) return false;  // a scalar tensor: its type gives way
  inputs_[index] = &resolved_.emplace_back(inputs_[index]->to(type));
  tensors_[index] = describe_input(*inputs_[index]);
  return true;
}

void Arguments::replace(size_t position, const at::Tensor& tensor) {
  set_tensor(values_[position], tensor);
}

c10::DeviceIndex Arguments::settle(const char* name, c10::DeviceIndex fallback, bool take_scalars) {
  const c10::DeviceIndex device = inputs_.empty() ? fallback : inputs_.front()->device().index();
  const auto check = [&](bool fits, const at::Tensor& tensor) {
    if (fits) [[likely]]
      return;
    try {
      ocltensor::refuse_devices(name, c10::Device(kOcl, device).str(), tensor.device().str());
    } catch (const ocltensor::Error& error) {
      raise(error, name);
    }
  };
  for (const at::Tensor* t : inputs_) check(t->device().index() == device, *t);
  for (const auto& [at, scalar] : scalar_tensors_) {
    const bool wrapped = scalar->unsafeGetTensorImpl()->is_wrapped_number();
    check((take_scalars || wrapped) && scalar->dim() == 0 && scalar->device().is_cpu(), *scalar);
    take_scalar_tensor(*scalar, values_[at], device);
  }
  if (generator_at_ != kMost) values_[generator_at_].as.p = generator_handle(generator_, device);
  return device;
}

}  // namespace torch_ocl
