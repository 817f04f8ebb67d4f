// One operator of the plugin, called with ATen's arguments: outputs are inferred, checked or
// allocated as ATen's own kernels do.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <span>
#include <stdexcept>

#include "arguments.h"
#include "base/call_plan.h"

namespace torch_ocl {

// Thrown if the plugin declined a call: nothing was written. The caller falls back or raises.
class Declined : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The plugin's operator of this name, looked up at the first call.
class OperatorHandle {
 public:
  // `name` is the plugin's: "add.out". Must live as long as the process.
  explicit OperatorHandle(const char* name) : name_(name) {}
  const char* name() const { return name_; }
  // Calls it with settled arguments and described outputs, on the device's current stream. `call`
  // holds the rest of what the call needs. Throws Declined.
  void invoke(tb_call call, const Arguments& in, std::span<const tb_tensor* const> outs,
              c10::DeviceIndex device);

 private:
  const char* name_;
  std::atomic<tb_op> op_{nullptr};
};

class PluginOperator {
 public:
  explicit PluginOperator(const char* name) : handle_(name) {}

  // Allocates outputs as inference says and runs. `outs` has one entry per output of the operator;
  // an output that the call does not produce (output_mask) stays undefined. Throws Declined.
  void run_functional(Arguments& in, std::span<at::Tensor> outs);
  // Writes to given outputs: checks device and dtype, resizes, refuses overlap.
  void run_out(Arguments& in, std::span<at::Tensor> outs);
  // The same for an operator that changes `outs` in place: their shape and dtype are fixed.
  void run_in_place(Arguments& in, std::span<at::Tensor> outs);
  const char* name() const { return handle_.name(); }
  // The call itself: arguments are settled, outputs have the plugin's types and shapes.
  void invoke(const Arguments& in, std::span<at::Tensor> outs, c10::DeviceIndex device);

 private:
  class Call;
  void run(Arguments& in, std::span<at::Tensor> outs, ocltensor::OutputMode mode);
  void invoke_described(const Arguments& in, std::span<at::Tensor> outs, const tb_tensor* described,
                        c10::DeviceIndex device);
  const ocltensor::Operator& schema();

  OperatorHandle handle_;
  std::atomic<const ocltensor::Operator*> schema_{nullptr};
};

// Handles a declined call of an operator of the table by a kernel written by hand, whose own ATen
// operator may have another meaning or none on the CPU: ATen's operator of the row's name runs
// there, as in fall_back(). `stack` has the row's inputs, for an out form (`row` as ATen names it)
// its outputs, too; it gets the results.
enum class RowForm { Functional, Out };
void fall_back_row(const char* row, RowForm form, torch::jit::Stack& stack, const char* reason);

// For kernels written by hand: all inputs in the schema's order. False if the plugin declines.
template <size_t N, typename... Inputs>
bool try_plugin(PluginOperator& op, std::array<at::Tensor, N>& outs, const Inputs&... inputs) {
  Arguments in;
  (in.add(inputs), ...);
  try {
    op.run_functional(in, outs);
    return true;
  } catch (const Declined&) {
    return false;
  }
}

// The same for calls that fall back to the CPU when they are declined.
template <size_t N, typename... Inputs>
std::array<at::Tensor, N> call_plugin(PluginOperator& op, const Inputs&... inputs) {
  std::array<at::Tensor, N> outs;
  Arguments in;
  (in.add(inputs), ...);
  try {
    op.run_functional(in, outs);
  } catch (const Declined& declined) {
    torch::jit::Stack stack;
    torch::jit::push(stack, inputs...);
    fall_back_row(op.name(), RowForm::Functional, stack, declined.what());
    for (size_t i = 0; i < N; ++i) outs[i] = stack.at(i).toTensor();
  }
  return outs;
}

// The same with given outputs.
template <typename... Inputs>
void call_plugin_out(PluginOperator& op, std::span<at::Tensor> outs, const Inputs&... inputs) {
  Arguments in;
  (in.add(inputs), ...);
  try {
    op.run_out(in, outs);
  } catch (const Declined& declined) {
    torch::jit::Stack stack;
    torch::jit::push(stack, inputs...);
    for (const at::Tensor& out : outs) torch::jit::push(stack, out);
    fall_back_row(op.name(), RowForm::Out, stack, declined.what());
  }
}

// A new tensor on an ocl device, contiguous if `strides` is empty.
at::Tensor make_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type,
                       c10::DeviceIndex device);
// Copies with conversion and broadcasting on the device, by the plugin's copy. The tensors may not
// partially overlap.
void copy_on_device(const at::Tensor& target, const at::Tensor& source);

// Handles a declined call: with OCLTENSOR_ENABLE_FALLBACK it runs on the CPU (with one warning per
// operator, and counted), else NotImplementedError with operator, reason and the variable's name.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack& stack, const char* reason);

}  // namespace torch_ocl
