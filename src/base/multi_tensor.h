// The foreach operators, described by the pointwise operator that each applies to every tensor; for
// hosts and backends.
#pragma once

#include <optional>
#include <vector>

#include "pointwise.h"

namespace ocltensor {

// The operands of the pointwise operator are the lists in their order, then the number if it is an
// operand. Its parameter s0 is the number if that is no operand, else alpha, else 1.
struct Foreach {
  const char* pointwise;      // "add.out"
  const PointwiseRow* row;    // of the same name; nullptr if it has none
  std::vector<Arg> lists;     // arguments that are lists of tensors, 1 to 3
  std::optional<Arg> number;  // a number, a list of them, or a tensor of one element
  bool number_is_operand = false;
  bool has_alpha = false;
};

// nullptr for other operators: the fused ones, norms and copies.
const Foreach* find_foreach(const Operator& op);

}  // namespace ocltensor
