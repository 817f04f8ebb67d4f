// Launches a formula over strided operands.
#pragma once

#include <array>
#include <span>
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
// The defines that kernels with a formula need (pointwise_formula.h), but for COMPUTE, FLOATING and
// UNSIGNED; those for vectors of 16; and the latter with those for CPUs' kernels of nothing else.
void define_formula(Defines& d, const Formula& formula, DType limits);
void define_vector_form(Defines& d, const Formula& formula);
void define_rows(const Capabilities& caps, Defines& d, const Formula& formula, DType compute);
// Computes `out` (any type, cast on store) elementwise; the inputs broadcast to its shape.
void launch_elementwise(const OpCall& call, TensorView out, const ElementwiseLaunch& what);
const AlgorithmFamily& pointwise_algorithms();

}  // namespace ocltensor::opencl::elementwise
