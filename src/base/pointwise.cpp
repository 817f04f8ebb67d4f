// Resolving a pointwise call: row, operands, parameters and types.
#include "pointwise.h"

#include <fmt/format.h>

#include <limits>

namespace ocltensor {
namespace {

// The row's name is the schema up to the parenthesis.
std::string name_of(const char* text) {
  const std::string_view s(text);
  return std::string(s.substr(0, s.find('(')));
}

const PointwiseRow* find_row(std::string_view name) {
  for (const PointwiseRow& row : pointwise_rows())
    if (row.name == name) return &row;
  return nullptr;
}

bool is_operand(const Argument& argument) {
  if (argument.type == ArgType::Tensor) return true;
  if (argument.type != ArgType::Scalar) return false;
  const std::string& n = argument.name;
  return n == "other" || n == "self" || n == "exponent" || n == "min" || n == "max";
}

// What an absent argument stands for.
Scalar absent(const std::string& name, DType type) {
  const bool lowest = name.starts_with("min");
  const bool highest = name.starts_with("max");
  if (is_floating(type)) {
    if (lowest) return -std::numeric_limits<double>::infinity();
    if (highest) return std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  const bool is_unsigned = type == DType::UInt8 || type == DType::Bool;
  const int bits = static_cast<int>(8 * size_of(type)) - (is_unsigned ? 0 : 1);
  const int64_t top =
      bits == 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
  return highest ? top : lowest && !is_unsigned ? -top - 1 : int64_t{0};
}

// The call's types under a rule: result type before compute_type().
DType result_type(const Args& args, const PointwiseCall& call) {
  const std::string name = args.schema().full_name();
  if (call.rule == TypeRule::MaskedFill) return args.tensor(call.operands[0].argument).dtype();
  PromotionState state;
  for (int k = 0; k < call.operand_count; ++k)
    if (!call.operands[k].is_condition && !args.is_none(call.operands[k].argument))
      state.add(args, call.operands[k].argument);
  const DType type = state.result();
  const auto refuse = [&](const char* wanted) {
    fail(TB_E_INVALID, "{} needs {} operands, got {}", name, wanted, ocltensor::name(type));
  };
  switch (call.rule) {
    case TypeRule::Float: return is_integral(type, true) ? DType::Float32 : type;
    case TypeRule::FloatOnly:
      if (!is_floating(type)) refuse("floating-point");
      break;
    case TypeRule::Number:
      if (type == DType::Bool) refuse("numeric");
      break;
    case TypeRule::Integral:
      if (!is_integral(type, true)) refuse("integer or bool");
      break;
    case TypeRule::IntegerOnly:
      if (!is_integral(type, false)) refuse("integer");
      break;
    default: break;
  }
  return type;
}

// What ATen refuses beyond types.
void check_values(const Args& args, const PointwiseCall& call) {
  const Schema& schema = args.schema();
  check(schema.name != "clamp" || !args.is_none(1) || !args.is_none(2),
        "clamp: at least one of min and max must be given");
  check(schema.full_name() != "pow.Tensor_Scalar_out" || !is_integral(call.compute, true) ||
            args.scalar(1).as_int() >= 0,
        "pow: an integer tensor cannot be raised to a negative integer power");
}

}  // namespace

std::span<const PointwiseRow> pointwise_rows() {
  static const auto& rows = *new std::vector<PointwiseRow>{
#define OCLTENSOR_POINTWISE(rule, schema, ...) {name_of(schema), TypeRule::rule},
#define OCLTENSOR_POINTWISE_VARIANT(rule, name, ...) {name, TypeRule::rule},
#include "pointwise.def"
#undef OCLTENSOR_POINTWISE
#undef OCLTENSOR_POINTWISE_VARIANT
  };
  return rows;
}

PointwiseCall resolve_pointwise(const Args& args) {
  const Schema& schema = args.schema();
  PointwiseCall call;
  std::string key = schema.full_name();
  for (size_t i = 0; i < schema.inputs.size(); ++i)
    if (schema.inputs[i].type == ArgType::String && !args.string(i).empty() &&
        args.string(i) != "none")
      key.append(":").append(args.string(i));
  const PointwiseRow* row = find_row(key);
  check(row != nullptr, "{}: '{}' is not an accepted option", schema.full_name(),
        key.substr(key.find(':') + 1));
  call.rule = row->rule;

  int parameters[kMaxParameters];
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    const Argument& argument = schema.inputs[i];
    if (is_operand(argument)) {
      const int k = call.operand_count++;
      call.operands[k].argument = static_cast<int>(i);
      call.operands[k].is_number = !args.is_tensor(i);
      call.operands[k].is_condition =
          (call.rule == TypeRule::Where && k == 0) || (call.rule == TypeRule::MaskedFill && k == 1);
      if (!argument.optional && args.is_none(i)) (void)args.tensor(i);  // raises
    } else if (argument.type != ArgType::String) {
      parameters[call.parameter_count++] = static_cast<int>(i);
    }
  }
  call.result = result_type(args, call);
  call.compute = compute_type(call.result);
  if (call.rule == TypeRule::Compare) call.result = DType::Bool;
  check_values(args, call);
  if (const PointwiseRow* typed = find_row(fmt::format("{}@{}", key, name(call.compute))))
    row = typed;
  call.row = row->name;

  for (int k = 0; k < call.operand_count; ++k) {
    auto& operand = call.operands[k];
    if (operand.is_number)
      operand.value = args.is_none(operand.argument)
                          ? absent(schema.inputs[operand.argument].name, call.compute)
                          : args.scalar(operand.argument);
  }
  for (int k = 0; k < call.parameter_count; ++k) {
    const int i = parameters[k];
    call.parameters[k] =
        args.is_none(i) ? absent(schema.inputs[i].name, call.compute) : args.scalar(i);
    if (schema.inputs[i].type == ArgType::Scalar && is_integral(call.compute, true))
      check(!call.parameters[k].is_float(),
            "{}: for integer tensors, argument '{}' must be an integer", schema.full_name(),
            schema.inputs[i].name);
  }
  return call;
}

std::vector<TensorSpec> infer_pointwise(const Args& args) {
  const PointwiseCall call = resolve_pointwise(args);
  TensorSpec spec;
  spec.dtype = call.result;
  for (int k = 0; k < call.operand_count; ++k)
    if (!call.operands[k].is_number)
      spec.sizes = broadcast(spec.sizes, args.tensor(call.operands[k].argument).sizes());
  return {spec};
}

}  // namespace ocltensor
