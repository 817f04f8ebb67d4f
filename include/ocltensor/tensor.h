// Tensor: a shared handle to strided memory on a device. Copying a Tensor copies the handle.
//
// Threads: metadata may be read from any thread; a tensor that one thread resizes (as an out
// argument) or writes must not be used by another at the same time. Work is enqueued on the current
// stream of the tensor's device; memory goes back to the pool in stream order.
// Errors: ocltensor::Error; its status() is TB_E_INVALID for bad arguments.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ocltensor/dims.h"
#include "ocltensor/scalar.h"
#include "ocltensor/stream.h"

namespace ocltensor {

class Tensor;

namespace detail {

struct Storage;

// A tensor's metadata is the ABI's tb_tensor itself, so that passing an argument converts nothing.
struct TensorImpl final : tb_tensor {
  std::shared_ptr<Storage> storage;
  Dims shape;
  Dims steps;          // strides in elements
  int64_t offset = 0;  // of the first element in the storage, in elements
  DType type = DType::Float32;
  Device device;
};

OCLTENSOR_API Tensor make_view(const Tensor& base, const Dims& sizes, const Dims& strides,
                               int64_t offset);

}  // namespace detail

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::UInt8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::Int8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::Int16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::Int32;
  else if constexpr (std::is_same_v<T, float>)
    return DType::Float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::Float64;
  else {
    static_assert(std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8,
                  "no tensor dtype has this C++ type");
    return DType::Int64;
  }
}

class OCLTENSOR_API Tensor {
 public:
  Tensor() = default;  // undefined: only defined(), assignment and destruction are allowed
  explicit Tensor(std::shared_ptr<detail::TensorImpl> impl) : impl_(std::move(impl)) {}
  bool defined() const { return impl_ != nullptr; }
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  // Assigning to a variable replaces its handle: `row = m[0]` copies no data.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  // Assigning to a temporary writes to its elements: `m[0] = other` is m[0].copy_(other),
  // `m[0] = 2.5` is m[0].fill_(2.5).
  Tensor& operator=(const Tensor& other) &&;
  Tensor& operator=(const Scalar& value) &&;

  // ---- metadata
  std::span<const int64_t> sizes() const { return get().shape; }
  std::span<const int64_t> strides() const { return get().steps; }  // elements
  int64_t dim() const { return static_cast<int64_t>(get().shape.size()); }
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t numel() const;
  int64_t offset() const { return get().offset; }  // elements
  DType dtype() const { return get().type; }
  Device device() const { return get().device; }
  bool is_contiguous() const;
  bool is_pinned() const;
  // Address of the first element: a host address on the CPU.
  tb_address address() const { return get().address; }
  // Host pointer of a CPU tensor; TB_E_INVALID for other devices and for another dtype.
  template <typename T>
  T* data() const {
    return static_cast<T*>(host_pointer(dtype_of<T>()));
  }
  void* data() const { return host_pointer(dtype()); }
  const tb_tensor& abi() const { return get(); }
  bool shares_storage(const Tensor& other) const;

  // ---- views: no data is copied. A negative dimension counts from the end.
  Tensor view(std::span<const int64_t> sizes) const;  // one size may be -1
  Tensor view(std::initializer_list<int64_t> sizes) const { return view(Dims(sizes)); }
  Tensor as_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                    int64_t offset) const;  // bounds are checked; `offset` is the storage's
  Tensor slice(int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
               int64_t step = 1) const;  // Python's rules, step > 0
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor t() const;  // up to two dimensions
  Tensor permute(std::span<const int64_t> dims) const;
  Tensor permute(std::initializer_list<int64_t> dims) const { return permute(Dims(dims)); }
  Tensor expand(std::span<const int64_t> sizes) const;  // -1 keeps a size
  Tensor expand(std::initializer_list<int64_t> sizes) const { return expand(Dims(sizes)); }
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor operator[](int64_t index) const { return select(0, index); }

  // ---- data
  Tensor reshape(std::span<const int64_t> sizes) const;  // a view where possible, else a copy
  Tensor reshape(std::initializer_list<int64_t> sizes) const { return reshape(Dims(sizes)); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) const;
  Tensor contiguous() const;  // this tensor if it is contiguous
  Tensor clone() const;       // a contiguous copy
  // This tensor if nothing changes, else a copy. `non_blocking` has an effect with pinned host
  // memory only.
  Tensor to(DType dtype) const;
  Tensor to(Device device, bool non_blocking = false) const;
  Tensor cpu() const { return to(Device()); }
  // Copies from a tensor of any device, dtype and strides, broadcast to this one's shape. Returns
  // this tensor.
  const Tensor& copy_(const Tensor& source, bool non_blocking = false) const;
  const Tensor& fill_(Scalar value) const;
  const Tensor& zero_() const { return fill_(0); }
  Tensor pin_memory(Device device = "ocl") const;  // a copy in page-locked host memory
  // Gives the tensor a new shape, contiguous; the content is undefined. Other tensors that share
  // the storage keep theirs.
  void resize_(std::span<const int64_t> sizes) const;
  // Work on `stream` uses the memory, too: it is not reused before that work has finished.
  void record_stream(const Stream& stream) const;

  // ---- to the host
  Scalar item() const;  // of a tensor with one element
  template <typename T>
  T item() const {  // TB_E_INVALID for complex
    const Scalar s = item();
    check(!s.is_complex(), "a complex64 element is not a real number: use item()");
    if constexpr (std::is_same_v<T, bool>)
      return s.as_bool();
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(s.as_int());
    else
      return static_cast<T>(s.as_double());
  }
  // All elements in row-major order, converted.
  template <typename T>
  std::vector<T> to_vector() const {
    const Tensor host = host_copy(dtype_of<T>());
    const T* first = static_cast<const T*>(host.data());
    return std::vector<T>(first, first + host.numel());
  }
  std::string text() const;  // values (shortened beyond 1000), shape, dtype, device

  const std::shared_ptr<detail::TensorImpl>& impl() const { return impl_; }

 private:
  const detail::TensorImpl& get() const {
    if (!impl_) [[unlikely]]
      fail_undefined();
    return *impl_;
  }
  [[noreturn]] static void fail_undefined();
  void* host_pointer(DType expected) const;
  Tensor host_copy(DType dtype) const;
  std::shared_ptr<detail::TensorImpl> impl_;
};

OCLTENSOR_API std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

// ---- creation; sizes must not be negative
OCLTENSOR_API Tensor empty(std::span<const int64_t> sizes, DType dtype = DType::Float32,
                           Device device = {});
// Strides must not be negative.
OCLTENSOR_API Tensor empty_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                                   DType dtype = DType::Float32, Device device = {});
OCLTENSOR_API Tensor full(std::span<const int64_t> sizes, Scalar value,
                          DType dtype = DType::Float32, Device device = {});
// A copy of host memory that holds numel elements in row-major order.
OCLTENSOR_API Tensor from_host(const void* data, std::span<const int64_t> sizes, DType dtype,
                               Device device = {});
inline Tensor empty(std::initializer_list<int64_t> sizes, DType dtype = DType::Float32,
                    Device device = {}) {
  return empty(Dims(sizes), dtype, device);
}
inline Tensor full(std::initializer_list<int64_t> sizes, Scalar value, DType dtype = DType::Float32,
                   Device device = {}) {
  return full(Dims(sizes), value, dtype, device);
}
inline Tensor zeros(std::span<const int64_t> sizes, DType dtype = DType::Float32,
                    Device device = {}) {
  return full(sizes, 0, dtype, device);
}
inline Tensor zeros(std::initializer_list<int64_t> sizes, DType dtype = DType::Float32,
                    Device device = {}) {
  return full(Dims(sizes), 0, dtype, device);
}
inline Tensor ones(std::span<const int64_t> sizes, DType dtype = DType::Float32,
                   Device device = {}) {
  return full(sizes, 1, dtype, device);
}
inline Tensor ones(std::initializer_list<int64_t> sizes, DType dtype = DType::Float32,
                   Device device = {}) {
  return full(Dims(sizes), 1, dtype, device);
}
inline Tensor empty_like(const Tensor& t) { return empty(t.sizes(), t.dtype(), t.device()); }
inline Tensor zeros_like(const Tensor& t) { return zeros(t.sizes(), t.dtype(), t.device()); }
inline Tensor ones_like(const Tensor& t) { return ones(t.sizes(), t.dtype(), t.device()); }

// A tensor with these values. TB_E_INVALID unless their number is the product of the sizes.
template <typename T>
Tensor tensor(std::span<const T> values, std::span<const int64_t> sizes, Device device = {}) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  check(static_cast<int64_t>(values.size()) == count,
        "tensor(): {} values do not fill a shape of {} elements", values.size(), count);
  return from_host(values.data(), sizes, dtype_of<T>(), device);
}
template <typename T>
Tensor tensor(const std::vector<T>& values, std::initializer_list<int64_t> sizes,
              Device device = {}) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no array: use uint8_t and to()");
  return tensor(std::span<const T>(values), Dims(sizes), device);
}
template <typename T>
Tensor tensor(std::initializer_list<T> values, Device device = {}) {
  return tensor(std::span<const T>(values.begin(), values.size()),
                Dims{static_cast<int64_t>(values.size())}, device);
}

}  // namespace ocltensor
