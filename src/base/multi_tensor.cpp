// The foreach operators, derived from their schemas.
#include "multi_tensor.h"

#include <string>

namespace ocltensor {
namespace {

// Foreach operators whose pointwise operator is not called the same with ".out". The first row
// whose `foreach` the operator's name (with its overload) starts with applies.
struct Renamed {
  std::string_view foreach;
  const char* pointwise;
};
constexpr Renamed kRenamed[] = {
    {"clamp_max", "minimum.out"},     {"clamp_min", "maximum.out"},
    {"pow", "pow.Tensor_Tensor_out"}, {"lerp.List", "lerp.Tensor_out"},
    {"lerp", "lerp.Scalar_out"},
};
constexpr std::string_view kPrefix = "_foreach_";
constexpr std::string_view kParameterNumbers[] = {"addcdiv", "addcmul", "lerp"};

const char* pointwise_name(std::string_view foreach, std::string_view function) {
  for (const Renamed& row : kRenamed)
    if (foreach.starts_with(row.foreach)) return row.pointwise;
  const Operator* op = find_operator(std::string(function) + ".out");
  return op == nullptr ? nullptr : op->name.c_str();
}

std::optional<Foreach> derive(const Operator& op) {
  if (op.infer == nullptr || !op.schema.name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view function = std::string_view(op.schema.name).substr(kPrefix.size());
  if (function == "copy" || function == "norm" || function == "zero") return std::nullopt;
  Foreach f{};
  f.pointwise = pointwise_name(std::string_view(op.name).substr(kPrefix.size()), function);
  if (f.pointwise == nullptr)
    fail(TB_E_INTERNAL, "{}: there is no pointwise operator for it", op.name);
  for (const PointwiseRow& row : pointwise_rows())
    if (row.name == f.pointwise) f.row = &row;
  for (const Argument& argument : op.schema.inputs) {
    if (argument.type == ArgType::TensorList)
      f.lists.push_back(argument.arg.value());
    else if (argument.arg == Arg::alpha)
      f.has_alpha = true;
    else
      f.number = argument.arg;
  }
  f.number_is_operand = f.number.has_value();
  for (const std::string_view name : kParameterNumbers)
    if (function == name) f.number_is_operand = false;
  return f;
}

}  // namespace

const Foreach* find_foreach(const Operator& op) {
  static const auto& table = *new auto([] {
    std::vector<std::optional<Foreach>> list;
    for (const Operator& each : operators()) list.push_back(derive(each));
    return list;
  }());
  const auto& found = table.at(static_cast<size_t>(op.schema.index));
  return found ? &*found : nullptr;
}

}  // namespace ocltensor
