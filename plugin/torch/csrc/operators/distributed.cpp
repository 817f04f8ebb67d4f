// Collectives of torch.distributed on ocl tensors: if no backend takes them, the error says what to
// do.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <string_view>

namespace torch_ocl {
namespace {

// Backends of others may support ocl, so only refusals are translated.
void collective(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  try {
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
  } catch (const c10::Error& error) {
    const std::string_view text = error.what_without_backtrace();
    if (text.find("device type ocl") == std::string_view::npos) throw;
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "ocl: torch.distributed has no backend for tensors on ocl (", op.operator_name(),
        ": ", text.substr(0, text.find('\n')),
        "). Give collectives tensors on the CPU, tensor.cpu(), and copy the results back; "
        "DistributedDataParallel needs its module on the CPU, or a backend that is registered with "
        "torch.distributed.Backend.register_backend(..., devices=['ocl'])");
  }
}

constexpr const char* kCollectives[] = {
    "_allgather_base_",
    "_reduce_scatter_base_",
    "allgather_",
    "allgather_coalesced_",
    "allgather_into_tensor_coalesced_",
    "allreduce_",
    "allreduce_coalesced_",
    "alltoall_",
    "alltoall_base_",
    "broadcast_",
    "gather_",
    "recv_",
    "recv_any_source_",
    "reduce_",
    "reduce_scatter_",
    "reduce_scatter_tensor_coalesced_",
    "scatter_",
    "send",
};

}  // namespace

// Registered at autograd's key, because PyTorch has kernels of its own at the device's key.
TORCH_LIBRARY_IMPL(c10d, AutogradPrivateUse1, m) {
  for (const char* name : kCollectives)
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&collective>());
}

}  // namespace torch_ocl
