// A call of an operator for tests of what lies behind it.
#pragma once

#include "base/operators.h"
#include "call/op_call.h"

namespace ocltensor::opencl {

// A call of some operator, for what it leads to: stream, scratch memory, kernels.
class AnyCall {
 public:
  AnyCall()
      : stream_(device(0).default_stream()),
        memory_(stream_, 64),
        in_(memory_.address(), DType::Float32, Dims{1}),
        tensor_(&in_.view().raw()),
        value_{TB_TENSOR, 0, {.p = tensor_}},
        raw_{.struct_size = sizeof(tb_call),
             .flags = 0,
             .op = nullptr,
             .stream = nullptr,
             .args = &value_,
             .outs = &tensor_,
             .arg_count = 1,
             .out_count = 1,
             .resize_out = nullptr,
             .resize_context = nullptr},
        call_(raw_, *find_operator("neg.out"), stream_, false, {}, policy()) {}
  const OpCall& operator*() const { return call_; }

 private:
  Stream& stream_;
  Scratch memory_;
  LocalTensor in_;
  const tb_tensor* tensor_;
  tb_value value_;
  tb_call raw_;
  OpCall call_;
};

}  // namespace ocltensor::opencl
