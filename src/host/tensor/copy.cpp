// Copies: bytes with the transfer table, casts and strides with the device's operator "copy.out".
#include "copy.h"

#include <fmt/format.h>

#include <array>

#include "host/core/backend.h"
#include "host/core/named_errors.h"
#include "host/core/storage.h"
#include "host/dispatch/dispatcher.h"
#include "host/dispatch/fallback.h"

namespace ocltensor::detail {
namespace {

uint64_t bytes_of(const Tensor& t) { return static_cast<uint64_t>(t.numel() * size_of(t.dtype())); }
void* host(tb_address address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));  // NOLINT: CPU addresses
}

// Waits for the CPU's stream, so that CPU tensors may be read and written here.
void finish_cpu() { current_stream(Device()).synchronize(); }

const Stream& use(const Tensor& t) {
  const Stream& stream = current_stream(t.device());
  note_use(*t.impl(), stream);
  return stream;
}

// `asynchronous` is for pinned memory only: freeing it waits for the copies that use it.
void to_device(const Tensor& target, tb_address address, const void* source, uint64_t bytes,
               bool asynchronous) {
  invoke_api("copy to the device", backend(target.device()).api->transfer->to_device,
             use(target).handle(), address, source, bytes,
             asynchronous ? uint32_t{TB_COPY_ASYNC} : 0u);
}
void to_host(void* target, const Tensor& source, tb_address address, uint64_t bytes,
             bool asynchronous) {
  invoke_api("copy to the host", backend(source.device()).api->transfer->to_host,
             use(source).handle(), target, address, bytes,
             asynchronous ? uint32_t{TB_COPY_ASYNC} : 0u);
}

// "copy.out" on one device. False, with the reason, if the backend declines.
bool copy_operator(const Tensor& target, const Tensor& source, Declined* declined) {
  static const Operator& op = *find_operator("copy.out");
  tb_value args[3] = {};
  args[0].tag = args[1].tag = TB_TENSOR;
  args[0].as.p = &target.abi();
  args[1].as.p = &source.abi();
  args[2].tag = TB_BOOL;
  const tb_tensor* out = &target.abi();
  ErrorBuffer error;
  note_use(*source.impl(), use(target));
  const tb_status status =
      invoke(backend(target.device()), op, use(target), args, {&out, 1}, nullptr, error);
  if (status == TB_UNSUPPORTED) {
    *declined = {error.reason(), error.text()};
    return false;
  }
  error.raise_if_failed(status);
  return true;
}

// The same elements in host memory, with the same strides: for devices that decline "copy.out".
Tensor download_extent(const Tensor& source) {
  const Extent e = extent(source.sizes(), source.strides());
  const int64_t size = size_of(source.dtype());
  const Stream& cpu = current_stream(Device());
  auto storage = allocate(Device(), static_cast<uint64_t>((e.high - e.low) * size), cpu);
  finish_cpu();
  to_host(host(storage->address), source, source.address() + static_cast<tb_address>(e.low * size),
          storage->bytes, false);
  return make_tensor(storage, source.sizes(), source.strides(), -e.low, source.dtype());
}

// A CPU tensor with the values of a device tensor; it may have any strides.
Tensor to_cpu(const Tensor& source) {
  Tensor packed = source;
  if (!source.is_contiguous()) {
    packed = empty(source.sizes(), {source.dtype(), source.device()});
    Declined declined{};
    if (!copy_operator(packed, source, &declined)) return download_extent(source);
  }
  Tensor result = empty(source.sizes(), {source.dtype(), Device()});
  finish_cpu();
  to_host(result.data(), packed, packed.address(), bytes_of(packed), false);
  return result;
}

// `source`: a contiguous CPU tensor of the target's shape and dtype.
void from_cpu(const Tensor& target, const Tensor& source, bool non_blocking) {
  finish_cpu();
  const bool asynchronous = non_blocking && source.is_pinned();
  // An asynchronous copy to the host may still be writing to `source`.
  if (source.is_pinned() && !asynchronous) current_stream(target.device()).synchronize();
  if (target.is_contiguous())
    return to_device(target, target.address(), source.data(), bytes_of(target), asynchronous);
  const Tensor staging = empty(target.sizes(), {target.dtype(), target.device()});
  to_device(staging, staging.address(), source.data(), bytes_of(staging), asynchronous);
  Declined declined{};
  if (copy_operator(target, staging, &declined)) return;
  // The device declines "copy.out": change a copy of its bytes on the host and upload that.
  const Tensor bytes = download_extent(target);
  copy(bytes, source, false);
  finish_cpu();
  const int64_t low = extent(target.sizes(), target.strides()).low * size_of(target.dtype());
  to_device(target, target.address() + static_cast<tb_address>(low),
            host(bytes.impl()->storage->address), bytes.impl()->storage->bytes, false);
}

void copy_same_device(const Tensor& target, Tensor source) {
  const Overlap shared = overlap(*target.impl(), *source.impl());
  if (shared == Overlap::Same) return;
  if (shared != Overlap::None) source = source.clone();
  if (target.dtype() == source.dtype() && target.is_contiguous() && source.is_contiguous()) {
    const Stream& stream = use(target);
    note_use(*source.impl(), stream);
    invoke_api("copy on the device", backend(target.device()).api->transfer->on_device,
               stream.handle(), target.address(), stream.handle(), source.address(),
               bytes_of(target));
    return;
  }
  Declined declined{};
  if (copy_operator(target, source, &declined)) return;
  if (target.device().is_cpu())
    unsupported(declined.reason, "copy.out on the CPU: {}", declined.text);
  const std::string what = fmt::format("{} to {}", name(source.dtype()), name(target.dtype()));
  check_fallback_allowed("copy.out", target.device(), declined, what);
  const TracedFallback traced("copy.out", target.device());
  from_cpu(target, to_cpu(source).to(target.dtype()).contiguous(), false);
  count_fallback("copy.out", target.device(), declined, what);
}

// Between two devices of one backend: copies contiguous bytes; the target's device applies strides
// and casts.
void copy_between(const Tensor& target, const Tensor& source) {
  const Tensor packed = source.contiguous();
  const bool direct = target.is_contiguous() && target.dtype() == source.dtype();
  const Tensor landing = direct ? target : empty(target.sizes(), {source.dtype(), target.device()});
  invoke_api("copy between devices", backend(target.device()).api->transfer->on_device,
             use(landing).handle(), landing.address(), use(packed).handle(), packed.address(),
             bytes_of(landing));
  if (!direct) copy_same_device(target, landing);
}

}  // namespace

void copy(const Tensor& target, const Tensor& source, bool non_blocking) {
  check(!has_internal_overlap(target.sizes(), target.strides()),
        "copy: the target of shape {} and strides {} names an element twice: clone() it first",
        to_string(target.sizes()), to_string(target.strides()));
  Tensor from = source;
  if (!std::ranges::equal(source.sizes(), target.sizes())) {
    naming("copy_",
           [&] { return broadcast_strides(source.sizes(), source.strides(), target.sizes()); });
    from = source.expand(target.sizes());
  }
  if (target.numel() == 0) return;
  if (target.device() == from.device()) return copy_same_device(target, from);
  if (target.device().backend() == from.device().backend()) return copy_between(target, from);
  if (!target.device().is_cpu()) {
    const Tensor on_cpu = from.device().is_cpu() ? from : to_cpu(from);
    return from_cpu(target, on_cpu.to(target.dtype()).contiguous(), non_blocking);
  }
  if (target.is_contiguous() && from.is_contiguous() && target.dtype() == from.dtype()) {
    finish_cpu();
    return to_host(target.data(), from, from.address(), bytes_of(from),
                   non_blocking && target.is_pinned());
  }
  copy_same_device(target, to_cpu(from));
}

void upload(const Tensor& target, const void* data) {
  if (target.numel() == 0) return;
  check(data != nullptr, "there is no host memory to copy from");
  to_device(target, target.address(), data, bytes_of(target), false);
}

namespace {

// The bytes of one element.
void encode(DType type, Scalar value, unsigned char (&pattern)[16]) {
  const auto put = [&pattern](auto v) { std::memcpy(pattern, &v, sizeof v); };
  switch (type) {
    case DType::Bool: return put(static_cast<uint8_t>(value.as_bool()));
    case DType::UInt8: return put(static_cast<uint8_t>(value.as_int()));
    case DType::Int8: return put(static_cast<int8_t>(value.as_int()));
    case DType::Int16: return put(static_cast<int16_t>(value.as_int()));
    case DType::Int32: return put(static_cast<int32_t>(value.as_int()));
    case DType::Int64: return put(value.as_int());
    case DType::Float16: return put(float_to_half(static_cast<float>(value.as_double())));
    case DType::BFloat16: return put(float_to_bfloat16(static_cast<float>(value.as_double())));
    case DType::Complex64:
      return put(
          std::array{static_cast<float>(value.as_double()), static_cast<float>(value.imaginary())});
    case DType::Complex128: return put(std::array{value.as_double(), value.imaginary()});
    case DType::Complex32:
      return put(std::array{float_to_half(static_cast<float>(value.as_double())),
                            float_to_half(static_cast<float>(value.imaginary()))});
    case DType::Float32: return put(static_cast<float>(value.as_double()));
    case DType::Float64: return put(value.as_double());
    case DType::UInt16: return put(static_cast<uint16_t>(value.as_int()));
    case DType::UInt32: return put(static_cast<uint32_t>(value.as_int()));
    case DType::UInt64: return put(static_cast<uint64_t>(value.as_int()));
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0FNU:
      return put(float_to_float8(static_cast<float>(value.as_double()), type));
  }
}

}  // namespace

void fill(const Tensor& target, Scalar value) {
  if (target.numel() == 0) return;
  check(!(value.is_float() && is_integral(target.dtype(), false)) ||
            (value.as_double() >= -9.2e18 && value.as_double() <= 9.2e18),
        "fill: {} does not fit into {}", value.as_double(), name(target.dtype()));
  unsigned char pattern[16] = {};
  encode(target.dtype(), value, pattern);
  if (!target.is_contiguous()) {  // one element, repeated
    const Tensor one = empty({}, {target.dtype(), target.device()});
    upload(one, pattern);
    return copy(target, one, false);
  }
  invoke_api("fill", backend(target.device()).api->transfer->fill, use(target).handle(),
             target.address(), static_cast<const void*>(pattern),
             static_cast<uint32_t>(size_of(target.dtype())), bytes_of(target));
}

}  // namespace ocltensor::detail
