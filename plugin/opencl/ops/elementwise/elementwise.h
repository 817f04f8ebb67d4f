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
// What a launch over contiguous tensors of one shape came to, for who repeats it (repeated.h).
struct FlatWork {
  Kernel* kernel = nullptr;          // null: the launch was of another kind
  int64_t per_group = 0, local = 0;  // GPUs: elements and work-items of a work-group
};
struct ElementwiseLaunch {
  const Formula* formula;
  DType compute;
  DType limits;       // the type whose largest value is MAXIMUM in the formula
  bool test = false;  // the formula is a comparison
  std::span<const ElementwiseInput> inputs;  // at most 4
  std::span<const Scalar> parameters;        // at most 4
  FlatWork* made = nullptr;                  // to be filled in
};
// For kernels that end with a formula (kernels/include/epilogue.h): the defines that
// pointwise_formula.h needs, but for FLOATING and UNSIGNED; and those for vectors of 16.
void define_formula(Defines& d, const Formula& formula, DType compute, DType limits);
void define_vector_form(Defines& d, const Formula& formula);
// Computes `out` (any type, cast on store) elementwise; the inputs broadcast to its shape.
void launch_elementwise(const OpCall& call, TensorView out, const ElementwiseLaunch& what);
const AlgorithmFamily& pointwise_algorithms();
// Launches a flat kernel of `count` elements again, whose operands are at these addresses (0: a
// number or absent) with these bytes an element; the first is the output.
struct FlatOperand {
  tb_address address = 0;
  int64_t item = 0;
};
void repeat_flat(const OpCall& call, const FlatWork& work, std::span<const FlatOperand, 5> operands,
                 std::span<const uint64_t, 8> numbers, int64_t count);
// The numbers of a launch as its kernel gets them.
std::array<uint64_t, 8> number_bits(const ElementwiseLaunch& what);

}  // namespace ocltensor::opencl::elementwise
