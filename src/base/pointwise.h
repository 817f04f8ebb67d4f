// Pointwise operators: how the rows of pointwise.def are read. One row declares an operator
// (schema, type rule, flags); each backend adds one row with the formula in its own language, by
// the same name.
//
// Reading a schema: operands are the Tensor arguments and the Scalars named other, self, exponent,
// min or max, in schema order: they broadcast and take part in promotion. The remaining numbers and
// bools are parameters. Formulas see operands as a, b, c, d and parameters as s0, s1, s2, all in
// the compute type. An absent operand or parameter is the lowest value of the compute type if its
// name starts with "min", the highest for "max", and NaN otherwise.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operators.h"
#include "promotion.h"

namespace ocltensor {

enum class TypeRule : uint8_t {
  Any,          // computes and returns the promoted type
  Number,       // the same, but bool is refused
  Quotient,     // Number, of integers not by zero: operand b is a divisor
  Float,        // integers become float32
  FloatOnly,    // integers are refused
  Integral,     // integers and bool only
  IntegerOnly,  // integers only
  Compare,      // computes in the promoted type, returns bool
  Where,        // operand a is a bool condition outside promotion; returns the promoted type of the
                // others
  MaskedFill,   // operand b is a bool mask; returns the type of a, the other operands are converted
                // to it
};

struct PointwiseRow {
  std::string name;  // "add.out"; variants: "gelu.out:tanh" (string argument),
                     // "bitwise_not.out@bool" (compute type)
  TypeRule rule;
  size_t index;  // position in pointwise_rows()
};

inline constexpr int kMaxOperands = 4;
inline constexpr int kMaxParameters = 4;

// One call, resolved: what to compute, in which type, over which operands.
struct PointwiseCall {
  const PointwiseRow* row;  // variant included
  TypeRule rule;
  DType compute;  // type of the formula (float32 for half types)
  DType result;   // type of the output before any cast to the out argument
  int operand_count = 0;
  int parameter_count = 0;
  struct Operand {
    Arg argument;
    bool is_number;     // a Python number or an absent operand: see value
    bool is_condition;  // loaded as bool
    Scalar value = 0;
  } operands[kMaxOperands];
  Scalar parameters[kMaxParameters] = {0, 0, 0, 0};
};

std::span<const PointwiseRow> pointwise_rows();
// Resolves row, types and operands. TB_E_INVALID for types that the rule refuses.
PointwiseCall resolve_pointwise(const Args& args);
// Inference for every operator of pointwise.def.
std::vector<TensorSpec> infer_pointwise(const Args& args);

}  // namespace ocltensor
