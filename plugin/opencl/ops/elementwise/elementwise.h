// Launches a formula over strided operands.
#pragma once

#include <string_view>

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::elementwise {

enum class FormulaForm : uint8_t { Vector, Lanes, Special, Trigonometric };
struct Formula {
  const char* name;
  FormulaForm form;
  const char* text;  // OpenCL C
};

// An input of an elementwise kernel: a tensor, or a number in the compute type.
struct ElementwiseInput {
  const TensorView* tensor = nullptr;  // null: `value`
  Scalar value = 0;
  bool is_condition = false;  // of any tensor type, read as bool
};
struct ElementwiseLaunch {
  const Formula* formula;
  DType compute;
  DType limits;       // the type whose largest value is MAXIMUM in the formula
  bool test = false;  // the formula is a comparison
  std::span<const ElementwiseInput> inputs;  // at most 4
  std::span<const Scalar> parameters;        // at most 4
};
// Computes `out` (any type, cast on store) elementwise; the inputs broadcast to its shape.
void launch_elementwise(const OpCall& call, TensorView out, const ElementwiseLaunch& what);
const AlgorithmFamily& pointwise_algorithms();

}  // namespace ocltensor::opencl::elementwise
