// The call through the ABI: as many outputs as the list has tensors.
#include "list_operator.h"

namespace torch_ocl {

void ListOperator::invoke(Arguments& in, at::TensorList outs, c10::DeviceIndex device) {
  (void)in.settle(name(), device, false);
  std::vector<tb_tensor> described;
  std::vector<const tb_tensor*> pointers;
  described.reserve(outs.size());
  pointers.reserve(outs.size());
  for (const at::Tensor& out : outs) described.push_back(describe_output(out));
  for (const tb_tensor& tensor : described) pointers.push_back(&tensor);
  handle_.invoke({}, in, pointers, device);
}

void ListOperator::invoke_or_raise(Arguments& in, at::TensorList outs, c10::DeviceIndex device) {
  try {
    invoke(in, outs, device);
  } catch (const Declined& declined) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "ocl: ", name(), ": ", declined.what());
  }
}

}  // namespace torch_ocl
