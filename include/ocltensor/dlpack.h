// DLPack: tensors of the CPU exchanged with other libraries (NumPy, PyTorch, JAX) without a copy.
// https://dmlc.github.io/dlpack. Needs <dlpack/dlpack.h> (Debian's libdlpack-dev), and is therefore
// no part of ocltensor.h.
//
// An OpenCL buffer has no address that DLPack could carry: tensors of devices are TB_E_INVALID,
// copy them with cpu() first.
#pragma once

#include <dlpack/dlpack.h>

#include <memory>

#include "ocltensor/creation.h"

namespace ocltensor {

// The tensor for another library, which calls the result's deleter when it needs it no longer;
// until then the memory stays. Waits for work on the tensor. TB_E_INVALID for tensors that are not
// on the CPU.
inline DLManagedTensor* to_dlpack(const Tensor& tensor) {
  check(tensor.device().is_cpu(), "to_dlpack: the tensor is on {}: use cpu() first",
        tensor.device().text());
  current_stream(Device()).synchronize();
  struct Owner {
    Tensor tensor;
    Dims sizes, strides;
    DLManagedTensor managed{};
  };
  auto owner = std::make_unique<Owner>();
  owner->tensor = tensor;
  owner->sizes = tensor.sizes();
  owner->strides = tensor.strides();
  const tb_dtype type = to_abi(tensor.dtype());  // the C ABI's numbers are DLPack's
  DLTensor& t = owner->managed.dl_tensor;
  t.data = tensor.numel() == 0 ? nullptr : tensor.data();
  t.device = {kDLCPU, 0};
  t.ndim = static_cast<int32_t>(tensor.dim());
  t.dtype = {type.code, type.bits, type.lanes};
  t.shape = owner->sizes.begin();
  t.strides = owner->strides.begin();
  owner->managed.manager_ctx = owner.get();
  owner->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Owner*>(self->manager_ctx);
  };
  return &owner.release()->managed;
}

// A tensor on another library's memory, whose deleter is called when the last tensor on it is gone.
// TB_E_INVALID for other devices than the CPU, negative strides and memory that is not aligned to
// its elements, TB_UNSUPPORTED for types that ocltensor lacks; the caller still owns `managed`
// then.
inline Tensor from_dlpack(DLManagedTensor* managed) {
  const DLTensor& t = managed->dl_tensor;
  check(t.device.device_type == kDLCPU || t.device.device_type == kDLCUDAHost,
        "from_dlpack: the memory is of DLPack's device type {}, not of the CPU",
        static_cast<int>(t.device.device_type));
  const DType type = from_abi({t.dtype.code, t.dtype.bits, t.dtype.lanes});
  const auto rank = static_cast<size_t>(t.ndim);
  const Dims sizes(std::span<const int64_t>(t.shape, rank));
  const Dims strides =
      t.strides == nullptr ? Dims() : Dims(std::span<const int64_t>(t.strides, rank));
  return from_blob(
      static_cast<char*>(t.data) + t.byte_offset, sizes, type,
      [managed](void*) {
        if (managed->deleter != nullptr) managed->deleter(managed);
      },
      strides);
}

}  // namespace ocltensor
