// The integer programs of a plan.
#include "integer.h"

#include <ATen/core/ivalue_inl.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>

namespace torch_ocl::plan {
namespace {

using Stack = c10::SmallVector<int64_t, 16>;

[[noreturn]] void refuse() {
  C10_THROW_ERROR(ValueError, "a size of a compiled graph has over 64 bits");
}

int64_t divided(int64_t a, int64_t b, bool want_remainder) {
  if (b == 0) throw DivisionByZero();
  if (a == INT64_MIN && b == -1) refuse();  // which the processor cannot divide
  const int64_t quotient = a / b, remainder = a % b;
  const bool is_below = remainder != 0 && (remainder < 0) != (b < 0);
  return want_remainder ? remainder + (is_below ? b : 0) : quotient - (is_below ? 1 : 0);
}

}  // namespace

Integer::Integer(const Text& program) {
  size_t depth = 0;
  for (const auto& [name, number] : program) {
    const Operation operation = operation_named(name);
    const size_t taken = operation <= Operation::Value ? 0 : operation == Operation::Negate ? 1 : 2;
    if (depth < taken) C10_THROW_ERROR(ValueError, "an integer program lacks an operand");
    depth += 1 - taken;
    program_.push_back({operation, number});
  }
  if (depth != 1) C10_THROW_ERROR(ValueError, "an integer program has one result");
  if (program_.size() == 1 && program_[0].operation == Operation::Constant) {
    constant_ = program_[0].number;
    program_.clear();
  }
}

Integer::Operation Integer::operation_named(const std::string& name) {
  // In the order of Operation.
  static constexpr std::array kNames{"constant", "value", "negate", "+",   "-",
                                     "*",        "//",    "%",      "min", "max"};
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end())
    C10_THROW_ERROR(ValueError, c10::str("integer programs have no operation ", name));
  return static_cast<Operation>(found - kNames.begin());
}

int64_t Integer::combine(Operation operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case Operation::Add: overflows = __builtin_add_overflow(a, b, &result); break;
    case Operation::Subtract: overflows = __builtin_sub_overflow(a, b, &result); break;
    case Operation::Multiply: overflows = __builtin_mul_overflow(a, b, &result); break;
    case Operation::Smaller: return std::min(a, b);
    case Operation::Larger: return std::max(a, b);
    default: return divided(a, b, operation == Operation::Remainder);
  }
  if (overflows) refuse();
  return result;
}

int64_t Integer::compute(const Values& values) const {
  Stack stack;
  for (const auto& [operation, number] : program_) {
    if (operation == Operation::Constant) {
      stack.push_back(number);
    } else if (operation == Operation::Value) {
      const c10::IValue& value = values[static_cast<size_t>(number)];
      if (!value.isInt())
        C10_THROW_ERROR(TypeError, c10::str("a size is no integer: ", value.tagKind()));
      stack.push_back(value.toInt());
    } else if (operation == Operation::Negate) {
      stack.back() = combine(Operation::Subtract, 0, stack.back());
    } else {
      const int64_t b = stack.pop_back_val();
      stack.back() = combine(operation, stack.back(), b);
    }
  }
  return stack.back();
}

Integers::Integers(std::vector<Integer> parts) : varying_(std::move(parts)) {
  fixed_.reserve(varying_.size());
  for (const Integer& part : varying_) fixed_.push_back(part.is_constant() ? part.constant() : 0);
  if (std::all_of(varying_.begin(), varying_.end(), [](const auto& p) { return p.is_constant(); }))
    varying_.clear();
}

c10::IntArrayRef Integers::evaluate(const Values& values, c10::DimVector& place) const {
  if (are_constant()) return fixed_;
  place.clear();
  for (const Integer& part : varying_) place.push_back(part.evaluate(values));
  return place;
}

}  // namespace torch_ocl::plan
