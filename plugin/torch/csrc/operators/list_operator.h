// An operator of the plugin over lists of tensors.
#pragma once

#include "operator.h"

namespace torch_ocl {

class ListOperator {
 public:
  explicit ListOperator(const char* name) : handle_(name) {}
  // `in` must be complete; `outs` are the tensors of the out list. Throws Declined.
  void invoke(Arguments& in, at::TensorList outs, c10::DeviceIndex device);
  // The same where the tensors of the first list are also the outputs, so that they are not
  // described twice. mutable_data_ptr() must have been called for each of them before they were
  // added, and none may be lazily negated or conjugated, as the call would write to a copy.
  void invoke_in_place(Arguments& in, c10::DeviceIndex device);
  const char* name() const { return handle_.name(); }

 private:
  void invoke_settled(Arguments& in, std::span<const tb_tensor* const> outs,
                      c10::DeviceIndex device);

  OperatorHandle handle_;
};

}  // namespace torch_ocl
