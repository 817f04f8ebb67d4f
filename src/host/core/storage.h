// Memory behind tensors, and building tensors on it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "ocltensor/tensor.h"

namespace ocltensor::detail {

// One allocation; freed in the order of the stream that it was allocated for.
struct Storage {
  Device device;
  tb_address address = 0;
  uint64_t bytes = 0;
  Stream stream;     // empty for pinned memory
  Device pinned_by;  // the device whose free_host frees the memory; the CPU: not pinned
  std::atomic<uint32_t> version{0};    // counts changes, for what the tape has saved
  bool adopted = false;                // memory of the caller
  std::function<void(void*)> deleter;  // of adopted memory; may be empty
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();
  bool is_pinned() const { return !pinned_by.is_cpu(); }
};

std::shared_ptr<Storage> allocate(Device device, uint64_t bytes, const Stream& stream);
std::shared_ptr<Storage> allocate_pinned(Device by, uint64_t bytes);
// Host memory of the caller, given to `deleter` in the end.
std::shared_ptr<Storage> adopt(void* data, uint64_t bytes, std::function<void(void*)> deleter);

// A tensor on a storage; no bounds are checked.
Tensor make_tensor(std::shared_ptr<Storage> storage, const Dims& sizes, const Dims& strides,
                   int64_t offset, DType dtype);
// Gives an existing tensor another storage and shape, to resize an out argument.
void reset_tensor(TensorImpl& impl, std::shared_ptr<Storage> storage, const Dims& sizes,
                  const Dims& strides, int64_t offset, DType dtype);
// New memory for `stream`; empty strides: contiguous.
Tensor allocate_tensor(const Dims& sizes, const Dims& strides, DType dtype, const Stream& stream);

inline const TensorImpl& impl_of(const tb_tensor* tensor) {
  return *static_cast<const TensorImpl*>(tensor);
}

}  // namespace ocltensor::detail
