// Calls an operator through the ABI with as many outputs as the list has tensors.
#include "list_operator.h"

namespace torch_ocl {

void ListOperator::invoke(Arguments& in, at::TensorList outs, c10::DeviceIndex device) {
  std::vector<tb_tensor> described;
  std::vector<const tb_tensor*> pointers;
  described.reserve(outs.size());
  pointers.reserve(outs.size());
  for (const at::Tensor& out : outs)
    pointers.push_back(&described.emplace_back(describe_output(out)));
  invoke_settled(in, pointers, device);
}

void ListOperator::invoke_in_place(Arguments& in, c10::DeviceIndex device) {
  invoke_settled(in, in.first_list(), device);
}

void ListOperator::invoke_settled(Arguments& in, std::span<const tb_tensor* const> outs,
                                  c10::DeviceIndex device) {
  (void)in.settle(name(), device, false);
  handle_.invoke({}, in, outs, device);
}

}  // namespace torch_ocl
