// One operator of the plugin over lists of tensors.
#pragma once

#include "operator.h"

namespace torch_ocl {

class ListOperator {
 public:
  // `name` is the plugin's and must live as long as the process.
  explicit ListOperator(const char* name) : name_(name) {}
  // `in` is complete, `outs` are the tensors of the out list. Throws Declined.
  void invoke(Arguments& in, at::TensorList outs, c10::DeviceIndex device);
  const char* name() const { return name_; }

 private:
  const char* name_;
  std::atomic<tb_op> op_{nullptr};
};

}  // namespace torch_ocl
