// Creates tensors and views of them, and changes their size or storage. The device works only where
// a storage grows.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "operator.h"
#include "runtime/allocator.h"
#include "runtime/stream.h"

namespace torch_ocl {
namespace {

c10::DeviceIndex index_of(std::optional<at::Device> device) {
  const at::Device d = device.value_or(at::Device(kOcl, -1));
  TORCH_INTERNAL_ASSERT(d.type() == kOcl, d);
  return d.has_index() ? d.index() : current_device();
}

void check_options(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided,
                              "ocl: only strided tensors are supported, got layout ", *layout);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

// The type of a new tensor; a decline names aten::empty, to which every constructor leads.
at::ScalarType storable(std::optional<at::ScalarType> dtype) {
  const at::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  try {
    (void)dtype_of(type);
  } catch (const c10::NotImplementedError&) {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "The operator 'aten::empty' is not implemented for the ocl "
                                "device: tensors of dtype ",
                                type, " are not supported");
  }
  return type;
}

// With torch.use_deterministic_algorithms(True) new memory is filled with NaN, or with the type's
// largest number, so that reads of uninitialised memory show.
at::Tensor filled(at::Tensor tensor) {
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory())
      [[unlikely]]
    at::native::fill_empty_deterministic_(tensor);
  return tensor;
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  check_options(layout, pin_memory);
  const at::ScalarType type = storable(dtype);
  const c10::DeviceGuard guard(c10::Device(kOcl, index_of(device)));
  return filled(at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), device_allocator(),
                                          c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type,
                                          format));
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const at::ScalarType type = storable(dtype);
  const c10::DeviceGuard guard(c10::Device(kOcl, index_of(device)));
  return filled(at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), device_allocator(),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type));
}

// A tensor of zeros without memory, which autograd uses for gradients that are zero.
at::Tensor efficient_zeros(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                           std::optional<at::Layout> layout, std::optional<at::Device> device,
                           std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const at::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  at::native::ZeroTensorAllocator nothing(at::Device(kOcl, index_of(device)));
  constexpr c10::DispatchKeySet keys({c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor});
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &nothing, keys, type,
                                   std::nullopt);
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
      offset ? std::optional<int64_t>(offset->guard_int(__FILE__, __LINE__)) : std::nullopt);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size,
                         c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size),
                                    C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

// ATen's own resize_ copies with memcpy if a storage grows; the hooks copy on the device.
void grow_storage(const at::Tensor& self, int64_t elements) {
  const int64_t bytes = (elements + self.storage_offset()) * static_cast<int64_t>(self.itemsize());
  if (elements > 0 && bytes > static_cast<int64_t>(self.storage().nbytes()))
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(),
                                                             static_cast<size_t>(bytes));
}

const at::Tensor& resize_(const at::Tensor& self, c10::SymIntArrayRef symbolic,
                          std::optional<at::MemoryFormat> format) {
  const at::IntArrayRef size = C10_AS_INTARRAYREF_SLOW(symbolic);
  if (self.sizes() == size && !format) return self;
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  if (format) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format ", *format);
    impl->empty_tensor_restride(*format);
  }
  grow_storage(self, impl->numel());
  return self;
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, c10::SymInt offset,
                               c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  const at::IntArrayRef strides = C10_AS_INTARRAYREF_SLOW(stride);
  const int64_t at = offset.guard_int(__FILE__, __LINE__);
  at::native::checkSetStorage(self, source, at, sizes, strides);
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(at);
  if (strides.empty() && !sizes.empty())
    impl->set_sizes_contiguous(sizes);
  else
    impl->set_sizes_and_strides(sizes, strides);
  int64_t last = self.numel() == 0 ? 0 : 1;
  for (int64_t d = 0; d < self.dim() && last > 0; ++d) last += (self.size(d) - 1) * self.stride(d);
  grow_storage(self, last);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_offset(self, std::move(source), 0, c10::SymInt(count), {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return at::native::set_tensor_(self, source);
}

at::Tensor& set_nothing(at::Tensor& self) {
  return set_storage_offset(
      self,
      at::Storage(at::Storage::use_byte_size_t(), 0, allocate_on(self.device().index(), 0),
                  device_allocator(), true),
      0, c10::SymInt(0), {});
}

bool is_set_to(const at::Tensor& self, const at::Tensor& other) {
  return self.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
         self.storage_offset() == other.storage_offset() && self.sizes() == other.sizes() &&
         self.strides() == other.strides() && self.scalar_type() == other.scalar_type();
}

// Whether `self.data = from` may turn one tensor into the other. PyTorch refuses it between its own
// devices and out-of-tree ones, and Module.to() then makes new parameters, which unties tied ones.
// ocl tensors are plain TensorImpls, as those of the CPU, so it is allowed.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  constexpr c10::DispatchKeySet plain_backends(
      {c10::BackendComponent::CPUBit, c10::BackendComponent::PrivateUse1Bit});
  const auto is_plain = [&](const at::Tensor& tensor) {
    const c10::DispatchKeySet keys = tensor.key_set();
    return tensor.layout() == at::kStrided && keys.has_any(plain_backends) &&
           keys.has_any(c10::DispatchKeySet(c10::DispatchKey::Dense));
  };
  return (is_plain(self) && is_plain(from)) ||
         self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

void record_stream(at::Tensor& self, at::Stream stream) {
  c10::impl::getDeviceGuardImpl(kOcl)->recordDataPtrOnStream(self.storage().data_ptr(), stream);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
  m.impl("as_strided", TORCH_FN(as_strided));
  m.impl("view", TORCH_FN(view));
  m.impl("_reshape_alias", TORCH_FN(reshape_alias));
  m.impl("unfold", TORCH_FN(unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("is_set_to", TORCH_FN(is_set_to));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  m.impl("record_stream", TORCH_FN(record_stream));
}

// As the operators that ATen composes it ends at autograd's key: wrapper subclasses, which have
// this device's keys, too, must not meet it in __torch_dispatch__.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
}

}  // namespace torch_ocl
