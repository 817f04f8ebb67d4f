// Resolving a pointwise call: row, operands, parameters and types.
#include "pointwise.h"

#include <algorithm>
#include <array>
#include <limits>

#include "iteration.h"

namespace ocltensor {
namespace {

// What follows from a schema and its rows, computed once, so that a call only has to read its
// arguments.
struct Plan {
  struct Variant {
    TypeRule rule;
    std::string option;  // value of the String argument; empty: the default
    std::array<const PointwiseRow*, kDTypeCount> rows;  // by compute type
  };
  enum class Absent : uint8_t { Lowest, Highest, NotANumber };
  struct Place {
    Arg argument;
    bool optional;
    bool is_condition;
    bool is_scalar;
    Absent absent;  // its value if it is not given
  };
  const Operator* op;
  TypeRule rule;
  std::optional<Arg> option;  // the String argument
  std::vector<Place> operands, parameters;
  std::vector<Variant> variants;
};

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

Plan make_plan(const Operator& op) {
  const Schema& schema = op.schema;
  Plan plan{&op, find_row(schema.full_name())->rule, {}, {}, {}, {}};
  for (const Argument& argument : schema.inputs) {
    const size_t k = plan.operands.size();
    const bool is_condition =
        (plan.rule == TypeRule::Where && k == 0) || (plan.rule == TypeRule::MaskedFill && k == 1);
    const Plan::Place place{argument.arg.value(), argument.optional, is_condition,
                            argument.type == ArgType::Scalar,
                            argument.name.starts_with("min")   ? Plan::Absent::Lowest
                            : argument.name.starts_with("max") ? Plan::Absent::Highest
                                                               : Plan::Absent::NotANumber};
    if (argument.type == ArgType::String)
      plan.option = argument.arg;
    else
      (argument.operand ? plan.operands : plan.parameters).push_back(place);
  }
  for (const PointwiseRow& row : pointwise_rows()) {
    const std::string_view name(row.name);
    const std::string_view stem = name.substr(0, name.find('@'));
    const std::string_view base = stem.substr(0, stem.find(':'));
    if (base != schema.full_name() || stem.size() != name.size()) continue;
    Plan::Variant variant{
        row.rule, std::string(stem.substr(std::min(stem.size(), base.size() + 1))), {}};
    for (int t = 0; t < kDTypeCount; ++t) {
      const PointwiseRow* typed =
          find_row(fmt::format("{}@{}", name, ocltensor::name(static_cast<DType>(t))));
      variant.rows[static_cast<size_t>(t)] = typed != nullptr ? typed : &row;
    }
    plan.variants.push_back(std::move(variant));
  }
  return plan;
}

const Plan& plan_of(const Schema& schema) {
  static const auto& plans = *new auto([] {
    std::vector<std::optional<Plan>> list;
    for (const Operator& op : operators())
      list.push_back(op.is(kPointwise) ? std::optional(make_plan(op)) : std::nullopt);
    return list;
  }());
  const auto i = static_cast<size_t>(schema.index);
  if (i >= plans.size() || !plans[i])
    fail(TB_E_INTERNAL, "{} is not a pointwise operator", schema.full_name());
  return *plans[i];
}

// The value of an absent argument.
Scalar value_of(Plan::Absent absent, DType type) {
  const bool lowest = absent == Plan::Absent::Lowest;
  const bool highest = absent == Plan::Absent::Highest;
  if (is_floating(type) || is_complex(type)) {
    if (lowest) return -std::numeric_limits<double>::infinity();
    if (highest) return std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (type == DType::UInt64) return highest ? int64_t{-1} : int64_t{0};  // as bits
  const int bits = static_cast<int>(8 * size_of(type)) - (is_unsigned(type) ? 0 : 1);
  const int64_t top = bits == 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
  return highest ? top : lowest && !is_unsigned(type) ? -top - 1 : int64_t{0};
}

// The call's result type by its type rule.
DType result_type(const Args& args, const PointwiseCall& call) {
  if (call.rule == TypeRule::MaskedFill) return args.tensor(call.operands[0].argument).dtype();
  PromotionState state;
  for (int k = 0; k < call.operand_count; ++k)
    if (!call.operands[k].is_condition && !args.is_none(call.operands[k].argument))
      state.add(args, call.operands[k].argument);
  const DType type = state.result();
  const auto refuse = [&](const char* wanted) {
    fail(TB_E_INVALID, "{} needs {} operands, got {}", args.schema().full_name(), wanted,
         ocltensor::name(type));
  };
  switch (call.rule) {
    case TypeRule::Float: return is_integral(type, true) ? DType::Float32 : type;
    case TypeRule::FloatOnly:
      if (!is_floating(type) && !is_complex(type)) refuse("floating-point or complex");
      break;
    case TypeRule::Number:
    case TypeRule::Quotient:
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

// Refuses the values that ATen refuses.
void check_values(const Operator& op, const Args& args, const PointwiseCall& call) {
  check(!op.is(kNeedsBound) || !args.is_none(Arg::min) || !args.is_none(Arg::max),
        "{}: at least one of min and max must be given", op.schema.name);
  check(!op.is(kWholeExponent) || !is_integral(call.compute, true) ||
            args.scalar(Arg::exponent).as_int() >= 0,
        "{}: an integer tensor cannot be raised to a negative integer power", op.schema.name);
}

// A number for integers, as ATen converts it: truncated if that fits. Factors must be whole.
Scalar to_integer(const Schema& schema, Arg argument, const Scalar& value, DType type) {
  check(argument != Arg::alpha, "{}: for integer tensors, argument 'alpha' must be an integer",
        schema.full_name());
  check_fits(value, type);
  if (type == DType::Bool) return Scalar(value.as_double() != 0);
  return Scalar(static_cast<int64_t>(value.as_double()));
}

const Plan::Variant& variant_of(const Plan& plan, const Args& args) {
  if (!plan.option) return plan.variants.front();
  std::string_view option = args.string(*plan.option);
  if (option == "none") option = {};
  for (const Plan::Variant& variant : plan.variants)
    if (variant.option == option) return variant;
  fail(TB_E_INVALID, "{}: '{}' is not an accepted option", args.schema().full_name(), option);
}

}  // namespace

std::span<const PointwiseRow> pointwise_rows() {
  static const auto& rows = *new auto([] {
    std::vector<PointwiseRow> list{
#define OCLTENSOR_POINTWISE(rule, schema, ...) {name_of(schema), TypeRule::rule, 0},
#define OCLTENSOR_POINTWISE_VARIANT(rule, name) {name, TypeRule::rule, 0},
#include "pointwise.def"
#undef OCLTENSOR_POINTWISE
#undef OCLTENSOR_POINTWISE_VARIANT
    };
    for (size_t i = 0; i < list.size(); ++i) list[i].index = i;
    return list;
  }());
  return rows;
}

PointwiseCall resolve_pointwise(const Args& args) {
  const Schema& schema = args.schema();
  const Plan& plan = plan_of(schema);
  const Plan::Variant& variant = variant_of(plan, args);
  PointwiseCall call;
  call.rule = variant.rule;
  for (const Plan::Place& place : plan.operands) {
    auto& operand = call.operands[call.operand_count++];
    operand.argument = place.argument;
    operand.is_number = !args.is_tensor(place.argument);
    operand.is_condition = place.is_condition;
    if (!place.optional && args.is_none(place.argument))
      (void)args.tensor(place.argument);  // raises
  }
  if (call.rule == TypeRule::MaskedFill && call.operand_count > 2 && !call.operands[2].is_number) {
    const auto dims = args.tensor(call.operands[2].argument).ndim();
    check(dims == 0,
          "{} only supports a 0-dimensional value tensor, but got tensor with {} dimension(s)",
          schema.name, dims);
  }
  call.result = result_type(args, call);
  call.compute = compute_type(call.result);
  if (call.rule == TypeRule::Compare) call.result = DType::Bool;
  if (plan.op->is(kRealOfComplex) && is_complex(call.compute)) call.result = real_type(call.result);
  check_values(*plan.op, args, call);
  call.row = variant.rows[static_cast<size_t>(call.compute)];

  const auto number = [&](const Plan::Place& place) {
    if (args.is_none(place.argument)) return value_of(place.absent, call.compute);
    const Scalar value = args.number(place.argument);
    check(!value.is_complex() || is_complex(call.compute),
          "{}: argument '{}' is complex, which the type {} cannot hold", schema.full_name(),
          name(place.argument), name(call.result));
    return value;
  };
  for (int k = 0; k < call.operand_count; ++k)
    if (call.operands[k].is_number)
      call.operands[k].value = number(plan.operands[static_cast<size_t>(k)]);
  for (const Plan::Place& place : plan.parameters) {
    Scalar& parameter = call.parameters[call.parameter_count++];
    parameter = number(place);
    if (place.is_scalar && parameter.is_float() && is_integral(call.compute, true))
      parameter = to_integer(schema, place.argument, parameter, call.compute);
  }
  return call;
}

std::vector<TensorSpec> infer_pointwise(const Args& args) {
  const PointwiseCall call = resolve_pointwise(args);
  const Plan& plan = plan_of(args.schema());
  TensorSpec spec;
  spec.dtype = call.result;
  std::array<Strided, kMaxOperands> tensors;
  size_t count = 0;
  for (int k = 0; k < call.operand_count; ++k) {
    if (!call.operands[k].is_number) {
      const TensorView t = args.tensor(call.operands[k].argument);
      tensors[count++] = {t.sizes(), t.strides()};
      if (!std::ranges::equal(spec.sizes, t.sizes())) spec.sizes = broadcast(spec.sizes, t.sizes());
    } else if (!plan.operands[static_cast<size_t>(k)].is_scalar) {
      tensors[count++] = {};  // a number in place of a tensor counts as a tensor without dimensions
    }
  }
  if (call.rule != TypeRule::MaskedFill)  // ATen fills a contiguous copy
    spec.strides = elementwise_strides(spec.sizes, std::span(tensors).first(count));
  return {spec};
}

}  // namespace ocltensor
