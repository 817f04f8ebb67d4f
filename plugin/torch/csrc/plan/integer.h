// Sizes of a plan: numbers, or small programs over the values of a run.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/DimVector.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plugin.h"

namespace torch_ocl::plan {

// What the names of a graph stand for, by their places.
using Values = std::vector<c10::IValue>;

// Python has an exception for it, PyTorch's C++ has none.
struct TORCH_OCL_API DivisionByZero : std::runtime_error {
  DivisionByZero() : std::runtime_error("integer division or modulo by zero") {}
};

// An integer of Python, in the order in which a stack computes it. Divisions round downwards.
// ValueError where 64 bits do not hold a result.
class TORCH_OCL_API Integer {
 public:
  // Operations by name and what they apply to: ("constant", a number), ("value", a place), or
  // ("+", 0) and the like. ValueError for names that are not known.
  using Text = std::vector<std::pair<std::string, int64_t>>;
  explicit Integer(const Text& program);

  bool is_constant() const { return program_.empty(); }
  int64_t constant() const { return constant_; }
  int64_t evaluate(const Values& values) const {
    return is_constant() ? constant_ : compute(values);
  }

 private:
  enum class Operation : uint8_t {
    Constant,
    Value,
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Smaller,
    Larger
  };
  struct Instruction {
    Operation operation;
    int64_t number;
  };

  int64_t compute(const Values& values) const;
  static Operation operation_named(const std::string& name);
  static int64_t combine(Operation operation, int64_t a, int64_t b);

  int64_t constant_ = 0;
  std::vector<Instruction> program_;  // empty: the constant
};

// Sizes or strides. Those that never vary are there already.
class TORCH_OCL_API Integers {
 public:
  explicit Integers(std::vector<Integer> parts);
  // `place` holds those that vary.
  c10::IntArrayRef evaluate(const Values& values, c10::DimVector& place) const;
  bool are_constant() const { return varying_.empty(); }
  size_t size() const { return fixed_.size(); }

 private:
  std::vector<int64_t> fixed_;
  std::vector<Integer> varying_;  // all of them, or none
};

}  // namespace torch_ocl::plan
