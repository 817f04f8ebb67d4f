// Tensor: a shared handle to strided memory on a device. Copying a Tensor copies the handle.
//
// Threads: metadata may be read from any thread; a tensor that one thread resizes (as an out
// argument) or writes must not be used by another at the same time. Work is enqueued on the current
// stream of the tensor's device; memory goes back to the pool in stream order.
// Errors: ocltensor::Error; its status() is TB_E_INVALID for bad arguments.
#pragma once

#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ocltensor/arguments.h"
#include "ocltensor/generator.h"
#include "ocltensor/options.h"
#include "ocltensor/stream.h"

namespace ocltensor {

class Index;
class Indexed;
class Selected;
struct Slice;

namespace detail {

struct Storage;
struct GradientState;

// A tensor's metadata is the ABI's tb_tensor itself, so that passing an argument converts nothing.
struct TensorImpl final : tb_tensor, std::enable_shared_from_this<TensorImpl> {
  std::shared_ptr<Storage> storage;
  Dims shape;
  Dims steps;          // strides in elements
  int64_t offset = 0;  // of the first element in the storage, in elements
  DType type = DType::Float32;
  Device device;
  std::shared_ptr<GradientState> gradient;  // none: no gradient is wanted (autograd.h)
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
  const Dims& sizes() const { return get().shape; }
  const Dims& strides() const { return get().steps; }  // elements
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
  Tensor view(const Dims& sizes) const;  // one size may be -1
  Tensor as_strided(const Dims& sizes, const Dims& strides,
                    int64_t offset) const;  // bounds are checked; `offset` is the storage's
  Tensor slice(int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
               int64_t step = 1) const;  // Python's rules, step > 0
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor t() const;  // up to two dimensions
  Tensor permute(const Dims& dims) const;
  Tensor expand(const Dims& sizes) const;  // -1 keeps a size
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor operator[](int64_t index) const { return select(0, index); }
  // a[mask], a[positions]: see indexing.h. To assign to what they name writes to this tensor.
  Selected operator[](const Tensor& index) const;
  // a[slice(1, 5)]. A template, so that `a[{1, 5}]` stays two positions.
  template <std::same_as<Slice> T>
  Indexed operator[](const T& range) const;
  // a[{0, slice(1, 5), "...", mask}]: one entry a dimension, by Python's rules.
  Indexed operator[](std::initializer_list<Index> indices) const;

  // ---- data
  Tensor reshape(const Dims& sizes) const;  // a view where possible, else a copy
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
  void resize_(const Dims& sizes) const;
  // Work on `stream` uses the memory, too: it is not reused before that work has finished.
  void record_stream(const Stream& stream) const;

  // ---- gradients: see autograd.h
  // A leaf whose gradient is wanted: of a floating dtype, else TB_E_INVALID.
  const Tensor& requires_grad_(bool wanted = true) const;
  bool requires_grad() const;
  bool is_leaf() const;  // made by the caller, not by a recorded operator
  // The gradient that backward() has added up for a leaf; undefined before.
  Tensor grad() const;
  void set_grad(const Tensor& gradient) const;  // an undefined one: none
  // Adds the gradients of this tensor, times `gradient` (one, for a tensor with one element), to
  // the leaves that it depends on. The tape behind it is freed unless `retain` is set.
  void backward(const OptionalTensor& gradient = std::nullopt, bool retain = false) const;
  Tensor detach() const;  // the same elements without the tape

  // ---- to the host
  Scalar item() const;  // of a tensor with one element
  // The element as T, TB_E_INVALID where T does not hold it: number_as() in scalar.h has the rule.
  template <typename T>
  T item() const {
    return number_as<T>(item());
  }
  // All elements in row-major order, each converted as item<T>() does.
  template <typename T>
  std::vector<T> to_vector() const {
    const Tensor host = host_copy(dtype_of<T>());
    const T* first = static_cast<const T*>(host.data());
    return std::vector<T>(first, first + host.numel());
  }
  std::string text() const;  // values (print.h), shape, dtype, device

  // ---- operators of the table that take the tensor first, and in-place forms
#include "ocltensor/methods.h"

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

inline OptionalTensor::OptionalTensor(const std::optional<Tensor>& tensor)
    : tensor_(tensor ? &*tensor : nullptr) {}
inline TensorList::TensorList(std::initializer_list<Tensor> v) : values_(v.begin(), v.size()) {}
inline TensorList::TensorList(const std::vector<Tensor>& v) : values_(v) {}

}  // namespace ocltensor

#include "ocltensor/creation.h"  // IWYU pragma: export
#include "ocltensor/indexing.h"  // IWYU pragma: export
