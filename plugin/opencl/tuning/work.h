// Operators' calls on a stream of their own, with random numbers: what tuning measures.
#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "call/op_call.h"

namespace ocltensor::opencl::tuning {

// Tensors live as long as it does.
class Work {
 public:
  explicit Work(Device& device);
  ~Work();
  Work(const Work&) = delete;

  // Of random numbers between -1 and 1, the same in every run. `strides` empty: row-major.
  TensorView random(DType type, const Dims& sizes, const Dims& strides = {});
  // Calls an operator ("mm.out"), with the outputs that it infers, under a policy.
  std::vector<TensorView> call(std::string_view name, std::span<const tb_value> arguments,
                               const Policy& policy);

 private:
  TensorView allocate(DType type, const Dims& sizes, const Dims& strides);

  Device& device_;
  Stream& stream_;
  std::deque<Scratch> memory_;
  std::deque<LocalTensor> tensors_;
  uint32_t seed_ = 1;
};

}  // namespace ocltensor::opencl::tuning
