// What a foreach operator does to each tensor, in terms of a pointwise operator; the same for hosts
// and backends.
#pragma once

#include <optional>
#include <vector>

#include "operators.h"

namespace ocltensor {

// Operands of the pointwise operator are the lists in their order, then the number where it is an
// operand; its parameter s0 is the number where it is none, else alpha, else 1.
struct Foreach {
  const char* pointwise;      // "add.out"
  std::vector<Arg> lists;     // arguments that are lists of tensors, 1 to 3
  std::optional<Arg> number;  // a number, a list of them, or a tensor of one element
  bool number_is_operand = false;
  bool has_alpha = false;
};

// nullptr for operators that are none (the fused ones, norms and copies).
const Foreach* find_foreach(const Operator& op);

}  // namespace ocltensor
