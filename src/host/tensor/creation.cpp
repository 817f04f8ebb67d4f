// Making tensors.
#include "ocltensor/creation.h"

#include "copy.h"
#include "host/core/backend.h"
#include "host/core/storage.h"

namespace ocltensor {

using detail::allocate_tensor;

Tensor empty(const Dims& sizes, const Options& options) {
  return allocate_tensor(sizes, {}, options.dtype_or(DType::Float32),
                         current_stream(options.device_or_default()));
}

Tensor empty_strided(const Dims& sizes, const Dims& strides, const Options& options) {
  check(sizes.size() == strides.size(), "empty_strided: {} sizes and {} strides", sizes.size(),
        strides.size());
  for (const int64_t s : strides)
    check(s >= 0, "empty_strided: a stride must not be negative, got {}", to_string(strides));
  return allocate_tensor(sizes, strides, options.dtype_or(DType::Float32),
                         current_stream(options.device_or_default()));
}

Tensor full(const Dims& sizes, Scalar value, const Options& options) {
  Tensor t = empty(sizes, options);
  t.fill_(value);
  return t;
}

Tensor empty_like(const Tensor& t, const Options& options) {
  return empty(t.sizes(), {options.dtype_or(t.dtype()), options.device.value_or(t.device())});
}

Tensor full_like(const Tensor& t, Scalar value, const Options& options) {
  Tensor made = empty_like(t, options);
  made.fill_(value);
  return made;
}

Tensor from_host(const void* data, const Dims& sizes, DType dtype, Device device) {
  Tensor t = empty(sizes, {dtype, device});
  detail::upload(t, data);
  return t;
}

Tensor from_blob(void* data, const Dims& sizes, DType dtype, std::function<void(void*)> deleter,
                 const Dims& strides) {
  check(strides.empty() || strides.size() == sizes.size(), "from_blob: {} sizes and {} strides",
        sizes.size(), strides.size());
  for (const int64_t s : strides)
    check(s >= 0, "from_blob: a stride must not be negative, got {}", to_string(strides));
  const auto address = reinterpret_cast<uintptr_t>(data);
  check(address % static_cast<uintptr_t>(size_of(dtype)) == 0,
        "from_blob: the data is not aligned to {} bytes, the size of a {}", size_of(dtype),
        name(dtype));
  const int64_t count = numel(sizes);
  check(data != nullptr || count == 0, "from_blob: no data for {} elements", count);
  const Dims steps = strides.empty() ? contiguous_strides(sizes) : strides;
  const int64_t elements = count == 0 ? 0 : extent(sizes, steps).high;
  return detail::make_tensor(
      detail::adopt(data, static_cast<uint64_t>(elements * size_of(dtype)), std::move(deleter)),
      sizes, steps, 0, dtype);
}

}  // namespace ocltensor
