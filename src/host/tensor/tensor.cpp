// Tensor: metadata, copies and conversion.
#include "ocltensor/tensor.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "copy.h"
#include "host/autograd/tape.h"
#include "host/core/backend.h"
#include "host/core/named_errors.h"
#include "host/core/storage.h"

namespace ocltensor {

void Tensor::fail_undefined() {
  fail(TB_E_INVALID, "the tensor is undefined: it was default-constructed and never assigned");
}

int64_t Tensor::size(int64_t dim) const {
  const Dims& shape = get().shape;
  check(!shape.empty(), "a 0-dimensional tensor has no dimension {}", dim);
  return shape[detail::wrapped("size", dim, this->dim())];
}
int64_t Tensor::stride(int64_t dim) const {
  const Dims& steps = get().steps;
  check(!steps.empty(), "a 0-dimensional tensor has no dimension {}", dim);
  return steps[detail::wrapped("stride", dim, this->dim())];
}
int64_t Tensor::numel() const { return ocltensor::numel(get().shape); }
bool Tensor::is_contiguous() const { return ocltensor::is_contiguous(sizes(), strides()); }
bool Tensor::is_pinned() const { return get().storage->is_pinned(); }
bool Tensor::shares_storage(const Tensor& other) const {
  return get().storage == other.get().storage;
}

void* Tensor::host_pointer(DType expected) const {
  check(device().is_cpu(), "data() needs a CPU tensor, this one is on {}: use to(\"cpu\")",
        device().text());
  check(expected == dtype(), "data() was asked for {}, the tensor holds {}", name(expected),
        name(dtype()));
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address()));  // NOLINT: a host address
}

namespace {

// Changes `t` in place by `change`, and records that it now depends on `source` (undefined: on
// nothing).
template <typename Change>
void change_in_place(const Tensor& t, const Tensor& source, const char* name, Change&& change) {
  if (!detail::any_gradient_wanted.load(std::memory_order_relaxed)) return change();
  const bool recorded =
      detail::may_record() && (detail::needs_gradient(t) || detail::needs_gradient(source));
  if (!recorded) {
    ++t.impl()->storage->version;
    return change();
  }
  detail::check_in_place(t, name);
  const detail::Edge edge = detail::edge_to(source);
  const NoGrad off;
  ++t.impl()->storage->version;
  change();
  detail::set_history(t, detail::make_node(name, {edge}, 1, [](const auto& g) { return g; }), 0);
}

}  // namespace

const Tensor& Tensor::copy_(const Tensor& source, bool non_blocking) const {
  (void)get();  // both are defined
  (void)source.get();
  change_in_place(*this, source, "copy_", [&] { detail::copy(*this, source, non_blocking); });
  return *this;
}

Tensor& Tensor::operator=(const Tensor& other) && {
  if (this != &other) copy_(other);
  return *this;
}

Tensor& Tensor::operator=(const Scalar& value) && {
  fill_(value);
  return *this;
}

const Tensor& Tensor::fill_(Scalar value) const {
  detail::naming("fill_", [&] { check_fits(value, dtype()); });
  change_in_place(*this, Tensor(), "fill_", [&] { detail::fill(*this, value); });
  return *this;
}

Tensor Tensor::clone() const {
  Tensor t = empty(sizes(), {dtype(), device()});
  t.copy_(*this);
  return t;
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::to(DType type) const {
  if (type == dtype()) return *this;
  Tensor t = empty(sizes(), {type, device()});
  t.copy_(*this);
  return t;
}

Tensor Tensor::to(Device target, bool non_blocking) const {
  if (target == device()) return *this;
  Tensor t = empty(sizes(), {dtype(), target});
  t.copy_(*this, non_blocking);
  return t;
}

Tensor Tensor::pin_memory(Device by) const {
  if (is_pinned()) return *this;
  const auto bytes = static_cast<uint64_t>(numel() * size_of(dtype()));
  Tensor t = detail::make_tensor(detail::allocate_pinned(by, bytes), get().shape,
                                 contiguous_strides(sizes()), 0, dtype());
  t.copy_(*this);
  return t;
}

void Tensor::resize_(const Dims& sizes) const {
  detail::TensorImpl& t = const_cast<detail::TensorImpl&>(get());  // NOLINT: handles are shared
  if (t.shape == sizes) return;
  const int64_t bytes = ocltensor::numel(sizes) * size_of(t.type);
  std::shared_ptr<detail::Storage> storage = t.storage;
  // Another tensor's memory must not change, so the storage is reused only if no other tensor has
  // it.
  if (storage.use_count() > 2 || static_cast<uint64_t>(bytes) > storage->bytes)
    storage = detail::allocate(t.device, static_cast<uint64_t>(bytes), current_stream(t.device));
  detail::reset_tensor(t, storage, sizes, contiguous_strides(sizes), 0, t.type);
}

void Tensor::record_stream(const Stream& stream) const {
  check(stream.device().backend() == device().backend(),
        "record_stream: a tensor of {} and a stream of {}", device().text(),
        stream.device().text());
  if (get().base != 0 && !is_pinned())
    invoke_api("record_stream", backend(device()).api->memory->record_use, get().base,
               stream.handle());
}

namespace {

template <typename T>
T load(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

Scalar element(DType type, const void* p) {
  switch (type) {
    case DType::Bool: return load<uint8_t>(p) != 0;
    case DType::UInt8: return static_cast<int64_t>(load<uint8_t>(p));
    case DType::Int8: return static_cast<int64_t>(load<int8_t>(p));
    case DType::Int16: return static_cast<int64_t>(load<int16_t>(p));
    case DType::Int32: return static_cast<int64_t>(load<int32_t>(p));
    case DType::Int64: return load<int64_t>(p);
    case DType::Float16: return static_cast<double>(half_to_float(load<uint16_t>(p)));
    case DType::BFloat16: return static_cast<double>(bfloat16_to_float(load<uint16_t>(p)));
    case DType::Float32: return static_cast<double>(load<float>(p));
    case DType::Float64: return load<double>(p);
    case DType::Complex64: return std::complex<double>(load<std::complex<float>>(p));
    case DType::Complex128: return load<std::complex<double>>(p);
    case DType::Complex32: {
      const auto parts = load<std::array<uint16_t, 2>>(p);
      return std::complex<double>(half_to_float(parts[0]), half_to_float(parts[1]));
    }
    case DType::UInt16: return static_cast<int64_t>(load<uint16_t>(p));
    case DType::UInt32: return static_cast<int64_t>(load<uint32_t>(p));
    case DType::UInt64: return static_cast<int64_t>(load<uint64_t>(p));
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0FNU: return static_cast<double>(float8_to_float(load<uint8_t>(p), type));
  }
  fail(TB_E_INTERNAL, "there is no dtype {}", static_cast<int>(type));
}

}  // namespace

Scalar Tensor::item() const {
  check(numel() == 1, "item() needs a tensor with one element, this one has shape {}",
        to_string(sizes()));
  const Tensor host = to(Device());
  current_stream(Device()).synchronize();
  return element(dtype(), host.data());
}

namespace {

// Whether each value of a type fits in another by the rule of item<T>().
bool always_fits(DType from, DType to) {
  if (is_complex(from)) return false;
  if (from == to || from == DType::Bool || to == DType::Bool || to == DType::Float64) return true;
  if (to == DType::Float32) return from != DType::Float64;
  return is_integral(from, true) && size_of(from) < size_of(to);
}

void check_element(const Scalar& value, DType type) {
  switch (type) {
    case DType::UInt8: number_as<uint8_t>(value); break;
    case DType::Int8: number_as<int8_t>(value); break;
    case DType::Int16: number_as<int16_t>(value); break;
    case DType::Int32: number_as<int32_t>(value); break;
    case DType::Int64: number_as<int64_t>(value); break;
    case DType::Float32: number_as<float>(value); break;
    case DType::Bool: number_as<bool>(value); break;
    default: number_as<double>(value);
  }
}

}  // namespace

Tensor Tensor::host_copy(DType type) const {
  const Tensor host = to(Device()).contiguous();
  if (!always_fits(dtype(), type)) {
    current_stream(Device()).synchronize();
    const auto* bytes = static_cast<const std::byte*>(host.data());
    for (int64_t i = 0; i < host.numel(); ++i)
      check_element(element(dtype(), bytes + i * size_of(dtype())), type);
  }
  Tensor converted = host.to(type);
  current_stream(Device()).synchronize();
  return converted;
}

namespace detail {

std::string element_text(DType type, const void* p, int precision) {
  const Scalar s = element(type, p);
  if (s.is_complex())
    return fmt::format("{:.{}g}{:+.{}g}j", s.as_double(), precision, s.imaginary(), precision);
  if (type == DType::Bool) return s.as_bool() ? "true" : "false";
  if (!s.is_float()) return std::to_string(s.as_int());
  if (std::isnan(s.as_double())) return "nan";  // of either sign
  return fmt::format("{:.{}g}", s.as_double(), precision);
}

}  // namespace detail
}  // namespace ocltensor
