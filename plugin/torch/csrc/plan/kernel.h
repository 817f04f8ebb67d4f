// A custom kernel and its launch, as prepared launches of Python and plans make it.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <string>

#include "runtime/plugin.h"

namespace torch_ocl {

// A kernel of a library that lives as long as this does.
struct KernelReference {
  std::shared_ptr<const void> library;
  tb_kernel kernel;
  std::string name;
  c10::DeviceIndex device;
};

struct LaunchSizes {
  uint32_t rank = 0;  // 0: not given
  std::array<uint64_t, 3> values{};
};
struct LaunchRange {
  LaunchSizes threads, group;
};

// A kernel may write through any of its pointers, so every tensor is passed as an output.
TORCH_OCL_API tb_tensor describe_argument(const KernelReference& kernel, const at::Tensor& tensor);

// On the current stream of the kernel's device. Waits if the host is far ahead of the device: the
// caller has released Python's lock.
TORCH_OCL_API void launch_kernel(const KernelReference& kernel, const tb_value* values,
                                 uint32_t count, const LaunchRange& range);

}  // namespace torch_ocl
