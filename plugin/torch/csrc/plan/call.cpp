// Calls of operators, by the dispatcher's stack.
#include "call.h"

#include <ATen/core/List.h>
#include <ATen/core/stack.h>

namespace torch_ocl::plan {

c10::IValue CallArgument::evaluate(const Values& values) const {
  switch (kind) {
    case Kind::Constant: return constant;
    case Kind::Value: return values[value];
    case Kind::Number: return number->evaluate(values);
    case Kind::List: break;
  }
  c10::impl::GenericList list(type);
  list.reserve(parts.size());
  for (const CallArgument& part : parts) list.push_back(part.evaluate(values));
  return list;
}

void Call::run(Run& run) const {
  torch::jit::Stack stack;
  stack.reserve(arguments_.size());
  for (const CallArgument& argument : arguments_) stack.push_back(argument.evaluate(run.values));
  target_.callBoxed(stack);
  if (!to_.has_value()) return;
  if (stack.size() == 1)
    run.values[*to_] = as_result(std::move(stack.front()));
  else
    run.values[*to_] = c10::ivalue::Tuple::create(std::move(stack));
}

c10::OperatorHandle operator_named(const std::string& name, const std::string& overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
}

}  // namespace torch_ocl::plan
