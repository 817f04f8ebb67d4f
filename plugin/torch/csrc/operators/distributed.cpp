// Collectives of torch.distributed on ocl tensors whose group has no backend for them: the error
// says what to do. The backend is in csrc/distributed.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <string_view>

namespace torch_ocl {
namespace {

void collective(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  try {
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
  } catch (const c10::Error& error) {
    const std::string_view text = error.what_without_backtrace();
    if (text.find("device type ocl") == std::string_view::npos) throw;
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "ocl: the process group has no backend for tensors on ocl (", op.operator_name(),
        ": ", text.substr(0, text.find('\n')),
        "). Make it by init_process_group() without a backend's name, or with \"ocl\" or "
        "\"cpu:gloo,ocl:ocl\"");
  }
}

void sparse(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "ocl: ", op.operator_name(),
                              ": tensors must be dense: make sparse gradients dense (an embedding "
                              "with sparse=False), or reduce them on the CPU");
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

TORCH_LIBRARY_IMPL(c10d, SparsePrivateUse1, m) {
  m.impl("allreduce_", torch::CppFunction::makeFromBoxedFunction<&sparse>());
}

}  // namespace torch_ocl
