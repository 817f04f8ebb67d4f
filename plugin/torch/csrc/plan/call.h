// A step of a plan that calls an operator.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>

#include "plan.h"

namespace torch_ocl::plan {

// What becomes an argument: a constant, a value, a number, or a list of such. Constants have the
// type that the operator's schema wants.
struct TORCH_OCL_API CallArgument {
  enum class Kind : uint8_t { Constant, Value, Number, List };

  Kind kind = Kind::Constant;
  c10::IValue constant;
  size_t value = 0;
  std::optional<Integer> number;
  std::vector<CallArgument> parts;
  c10::TypePtr type;  // of a list's elements

  c10::IValue evaluate(const Values& values) const;
};

// Arguments are all that the schema names, in its order.
class TORCH_OCL_API Call final : public Step {
 public:
  // `to`: where the result goes, several as a tuple; none is wanted of operators that write into
  // an argument.
  Call(c10::OperatorHandle target, std::vector<CallArgument> arguments, std::optional<size_t> to)
      : target_(std::move(target)), arguments_(std::move(arguments)), to_(to) {}
  void run(Run& run) const override;

 private:
  c10::OperatorHandle target_;
  std::vector<CallArgument> arguments_;
  std::optional<size_t> to_;
};

// RuntimeError if there is none, or if it has no kernel that takes arguments of any type.
TORCH_OCL_API c10::OperatorHandle operator_named(const std::string& name,
                                                 const std::string& overload);

}  // namespace torch_ocl::plan
