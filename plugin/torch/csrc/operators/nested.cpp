// Nested tensors of the strided layout: PyTorch's own kernels that do not depend on the device.
// They pass the buffer, or one component after another, to operators of plain tensors; the jagged
// layout's attention goes through them. PyTorch registers them for the CPU and, in every build, for
// NestedTensorHPU, which so tells them from kernels that read the CPU's memory.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_nested_from_padded_native.h>
#include <ATen/ops/_nested_view_from_buffer_native.h>
#include <torch/library.h>

namespace torch_ocl {
namespace {

// Not registered for HPU, but made of operators on the components, or of sizes, just so.
constexpr const char* kMore[] = {"aten::bmm", "aten::to_padded_tensor",
                                 "aten::_nested_tensor_softmax_with_shape",
                                 "aten::_nested_tensor_storage_offsets"};

// Registered for HPU, but bound to the CPU's memory, or to operators that are; the first and the
// third have kernels in composites/transformer_nested.cpp.
bool needs_kernel(const std::string& name) {
  return name == "aten::native_layer_norm" || name == "aten::native_layer_norm_backward" ||
         name == "aten::_transformer_encoder_layer_fwd";
}

template <c10::DispatchKey key>
void call_of(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(key), stack);
}

void refuse(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "The operator '", op.schema().operator_name(),
      "' is not implemented for nested tensors of the strided layout on the ocl device. Make them "
      "with layout=torch.jagged, which more operators take, or call it on their components "
      "(unbind).");
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  using c10::DispatchKey;
  using torch::CppFunction;
  for (const c10::OperatorName& op :
       c10::Dispatcher::singleton().getRegistrationsForDispatchKey(DispatchKey::NestedTensorHPU))
    if (op.getNamespace() == "aten" && !needs_kernel(op.name))
      m.impl(toString(op).c_str(),
             CppFunction::makeFromBoxedFunction<&call_of<DispatchKey::NestedTensorHPU>>());
  for (const char* name : kMore)
    m.impl(name, CppFunction::makeFromBoxedFunction<&call_of<DispatchKey::NestedTensorCPU>>());
}

// Of plain tensors, the buffer or a padded one, to nested ones.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_view_from_buffer", TORCH_FN(at::native::_nested_view_from_buffer));
  m.impl("_nested_from_padded", TORCH_FN(at::native::nested_from_padded_generic));
}

TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse>());
}

}  // namespace torch_ocl
