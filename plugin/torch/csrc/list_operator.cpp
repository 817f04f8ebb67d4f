// The call through the ABI: as many outputs as the list has tensors.
#include "list_operator.h"

#include "stream.h"

namespace torch_ocl {

void ListOperator::invoke(Arguments& in, at::TensorList outs, c10::DeviceIndex device) {
  (void)in.settle(name_, device, false);
  tb_op op = op_.load(std::memory_order_relaxed);
  ocltensor::ErrorBuffer error;
  if (op == nullptr) [[unlikely]] {
    const tb_status status = api().operators->find(name_, &op, error.get());
    if (status == TB_UNSUPPORTED) throw Declined(error.text());
    if (status != TB_OK) raise(status, name_, error.text());
    op_.store(op, std::memory_order_relaxed);
  }
  std::vector<tb_tensor> described;
  std::vector<const tb_tensor*> pointers;
  described.reserve(outs.size());
  for (const at::Tensor& out : outs) described.push_back(describe_output(out));
  for (const tb_tensor& tensor : described) pointers.push_back(&tensor);
  tb_call call{};
  call.struct_size = sizeof call;
  call.op = op;
  call.stream = current_handle(device);
  call.args = in.values().data();
  call.arg_count = static_cast<uint32_t>(in.values().size());
  call.outs = pointers.data();
  call.out_count = static_cast<uint32_t>(pointers.size());
  const tb_status status = api().operators->invoke(&call, error.get());
  if (status == TB_OK) [[likely]]
    return;
  if (status == TB_UNSUPPORTED) throw Declined(error.text());
  raise(status, name_, error.text());
}

}  // namespace torch_ocl
