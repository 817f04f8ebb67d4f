// Makes the memory range of a tensor.
#include "memory_range.h"

#include "ocltensor/dims.h"

namespace ocltensor::opencl {

MemoryRange::MemoryRange(TensorView tensor) : MemoryRange(nullptr) {
  if (tensor.numel() == 0) return;
  const Extent e = extent(tensor.sizes(), tensor.strides());
  address = tensor.address();
  low = e.low * tensor.itemsize();
  high = e.high * tensor.itemsize();
}

MemoryRange::MemoryRange(const TensorView* tensor)
    : MemoryRange(tensor == nullptr ? MemoryRange(nullptr) : MemoryRange(*tensor)) {}

}  // namespace ocltensor::opencl
