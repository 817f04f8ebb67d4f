// Memory that CUDA's libraries and other processes see: the plugin's shared segments for PyTorch.
#pragma once

#include <c10/core/Storage.h>

#include <optional>

#include "plugin.h"

namespace torch_ocl {

// Where an address of the device is for CUDA. NotImplementedError, with the reason, where the
// device shares no memory.
TORCH_OCL_API tb_shared_memory shared_place(const void* data);
// The same as CUDA's pointer; nullptr where there is none.
TORCH_OCL_API void* cuda_address(const void* data) noexcept;
// The number of the device in CUDA.
TORCH_OCL_API int cuda_number(c10::DeviceIndex index);
// Waits for all that CUDA does on the device.
TORCH_OCL_API void synchronize_cuda(c10::DeviceIndex index);

// A descriptor of the segment around the address, which the caller closes.
TORCH_OCL_API int export_memory(const void* data);

// Part of a segment that another process has.
struct SharedPart {
  std::string key;  // of the segment, in all processes: one that is here already is not taken again
  int descriptor;   // which the caller closes
  uint64_t segment_bytes, offset, bytes;
  // Closed when the storage is freed and the device has done with it: the owner waits for that.
  int lifetime;
};
TORCH_OCL_API c10::Storage import_storage(c10::DeviceIndex index, const SharedPart& part);

// Memory of CUDA's as memory of the device.
class CudaImport {
 public:
  // c10::Error where it was not made to be exported.
  TORCH_OCL_API CudaImport(c10::DeviceIndex index, uint64_t address, uint64_t bytes);
  // Waits until the device has done with it.
  TORCH_OCL_API ~CudaImport();
  CudaImport(const CudaImport&) = delete;
  CudaImport& operator=(const CudaImport&) = delete;
  void* data() const { return reinterpret_cast<void*>(address_); }  // NOLINT: of the device

 private:
  const c10::DeviceIndex index_;
  tb_address address_ = 0;
  int32_t is_own_ = 0;
};
// A new descriptor of the end that tells a storage's owner when all have freed it; -1 where the
// storage is this process's own.
TORCH_OCL_API int lifetime_of(const c10::Storage& storage);
// Copies CUDA's memory, after all that CUDA and the current stream have to do.
TORCH_OCL_API void copy_from_cuda(c10::DeviceIndex index, void* target, uint64_t address,
                                  uint64_t bytes);

}  // namespace torch_ocl
