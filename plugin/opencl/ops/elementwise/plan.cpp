// Plans: the loop nest of a launch, how its operands are read, and the parameters that follow.
#include "plan.h"

#include <algorithm>

#include "call/scalar_bits.h"

namespace ocltensor::opencl::elementwise {
namespace {

bool is_flat_launch(TensorView out, std::span<const ElementwiseInput> inputs) {
  std::array<Strided, 5> tensors{{{out.sizes(), out.strides()}}};
  size_t count = 1;
  for (const ElementwiseInput& input : inputs)
    if (input.tensor != nullptr)
      tensors[count++] = {input.tensor->sizes(), input.tensor->strides()};
  return is_flat(std::span(tensors).first(count));
}

void set_line(PointwiseParams& p, TensorView out, std::span<const ElementwiseInput> inputs) {
  p.rank = 1;
  p.rows = 1;
  p.sizes[0] = out.numel();
  p.strides[0][0] = 1;
  for (size_t k = 0; k < inputs.size(); ++k) p.strides[k + 1][0] = inputs[k].tensor != nullptr;
}

IterationSpace merged_nest(TensorView out, std::span<const ElementwiseInput> inputs) {
  std::array<Dims, 5> strides;
  strides[0] = Dims(out.strides());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TensorView* tensor = inputs[k].tensor;
    strides[k + 1] = tensor == nullptr
                         ? Dims(out.sizes().size(), 0)
                         : broadcast_strides(tensor->sizes(), tensor->strides(), out.sizes());
  }
  return make_iteration(out.sizes(), std::span(strides).first(1 + inputs.size()));
}

OperandKind kind_of(int64_t stride, bool is_output) {
  if (stride == 1) return OperandKind::Contiguous;
  return stride == 0 && !is_output ? OperandKind::Repeated : OperandKind::Strided;
}

void set_operands(PointwisePlan& plan, TensorView out, std::span<const ElementwiseInput> inputs) {
  plan.operands.fill({.type = plan.compute});
  const auto set = [&](size_t k, DType type, TensorView tensor) {
    const PointwiseParams& p = plan.params;
    PlannedOperand& operand = plan.operands[k];
    operand = {type, kind_of(p.strides[k][0], k == 0), static_cast<int32_t>(tensor.itemsize())};
    operand.high = operand.itemsize;
    for (size_t i = 0; i < static_cast<size_t>(p.rank); ++i) {
      const int64_t reach = (p.sizes[i] - 1) * p.strides[k][i] * operand.itemsize;
      (reach < 0 ? operand.low : operand.high) += reach;
    }
  };
  set(0, out.dtype(), out);
  for (size_t k = 0; k < inputs.size(); ++k)
    if (const TensorView* tensor = inputs[k].tensor)
      set(k + 1, inputs[k].is_condition ? DType::Bool : tensor->dtype(), *tensor);
}

void set_nest(PointwiseParams& p, const IterationSpace& nest) {
  const size_t rank = std::min<size_t>(nest.rank(), POINTWISE_RANK);
  p.rank = static_cast<int32_t>(rank);
  p.rows = 1;
  for (size_t i = 0; i < rank; ++i) {
    p.sizes[i] = nest.sizes[i];
    if (i > 0) p.rows *= p.sizes[i];
    for (size_t k = 0; k < nest.strides.size(); ++k) p.strides[k][i] = nest.strides[k][i];
  }
}

void set_numbers(PointwisePlan& plan, const ElementwiseLaunch& what) {
  const DType type = real_type(what.compute);
  const auto set = [&](size_t slot, const Scalar& value) {
    plan.params.numbers[slot] = scalar_bits(value, type);
    if (is_complex(what.compute)) plan.imaginary.bits[slot] = scalar_bits(value.imaginary(), type);
  };
  for (size_t k = 0; k < what.inputs.size(); ++k) set(k, what.inputs[k].value);
  for (size_t k = 0; k < what.parameters.size(); ++k) set(4 + k, what.parameters[k]);
}

}  // namespace

PointwisePlan make_plan(TensorView out, const ElementwiseLaunch& what) {
  PointwisePlan plan{
      what.formula, what.compute, what.limits, what.test, is_flat_launch(out, what.inputs), {}};
  if (plan.is_flat) {
    set_line(plan.params, out, what.inputs);
  } else {
    IterationSpace nest = merged_nest(out, what.inputs);
    set_nest(plan.params, nest);
    if (nest.rank() > POINTWISE_RANK)
      plan.nest = std::make_unique<const IterationSpace>(std::move(nest));
  }
  set_operands(plan, out, what.inputs);
  set_numbers(plan, what);
  return plan;
}

void set_count(PointwisePlan& plan, int64_t count) {
  plan.params.sizes[0] = count;
  for (PlannedOperand& operand : plan.operands) operand.high = count * operand.itemsize;
}

Addresses addresses_of(TensorView out, std::span<const ElementwiseInput> inputs) {
  Addresses addresses{out.address()};
  for (size_t k = 0; k < inputs.size(); ++k)
    if (inputs[k].tensor != nullptr) addresses[k + 1] = inputs[k].tensor->address();
  return addresses;
}

}  // namespace ocltensor::opencl::elementwise
