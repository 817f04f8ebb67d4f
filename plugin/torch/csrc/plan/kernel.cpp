// Launches of custom kernels.
#include "kernel.h"

#include "operators/arguments.h"
#include "runtime/stream.h"

namespace torch_ocl {

tb_tensor describe_argument(const KernelReference& kernel, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device() == c10::Device(kOcl, kernel.device),
              "a kernel compiled for ocl:", static_cast<int>(kernel.device),
              " was given a tensor on ", tensor.device());
  return describe_output(tensor);
}

void launch_kernel(const KernelReference& kernel, const tb_value* values, uint32_t count,
                   const LaunchRange& range) {
  const auto& [threads, group] = range;
  call_api(kernel.name.c_str(), api().kernel->launch, current_handle(kernel.device), kernel.kernel,
           values, count, threads.rank, threads.values.data(),
           group.rank == 0 ? nullptr : group.values.data());
}

}  // namespace torch_ocl
