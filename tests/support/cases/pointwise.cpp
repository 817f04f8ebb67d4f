// Cases of the pointwise family: generic from the schema, with pointwise_domains.cpp for values and
// tolerances.
#include "base/pointwise.h"

#include <algorithm>

#include "pointwise_domains.h"

namespace ocltensor::testing {
namespace {

TypeRule rule_of(const Operator& op) {
  for (const PointwiseRow& row : pointwise_rows())
    if (row.name == op.name) return row.rule;
  return TypeRule::Any;
}

bool takes_complex(const std::string& name) {
  static constexpr std::string_view kNames[] = {"acos",
                                                "acosh",
                                                "asin",
                                                "asinh",
                                                "atan",
                                                "atanh",
                                                "cos",
                                                "cosh",
                                                "sin",
                                                "sinh",
                                                "tan",
                                                "tanh",
                                                "exp",
                                                "exp2",
                                                "expm1",
                                                "log",
                                                "log10",
                                                "log1p",
                                                "log2",
                                                "sqrt",
                                                "rsqrt",
                                                "sinc",
                                                "abs",
                                                "angle",
                                                "reciprocal",
                                                "sigmoid",
                                                "silu",
                                                "neg",
                                                "sgn",
                                                "isnan",
                                                "add",
                                                "logical_not",
                                                "sub",
                                                "conj_physical",
                                                "rsub",
                                                "mul",
                                                "div",
                                                "pow",
                                                "eq",
                                                "ne",
                                                "logical_and",
                                                "where",
                                                "lerp",
                                                "addcmul",
                                                "addcdiv",
                                                "logical_or",
                                                "logical_xor",
                                                "masked_fill",
                                                "sigmoid_backward",
                                                "tanh_backward"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool accepts(const Operator& op, DType dtype) {
  if (is_complex(dtype)) return takes_complex(op.schema.name);
  switch (rule_of(op)) {
    case TypeRule::Number:
    case TypeRule::Quotient: return dtype != DType::Bool;
    case TypeRule::FloatOnly: return is_floating(dtype);
    case TypeRule::Integral: return is_integral(dtype, true);
    case TypeRule::IntegerOnly: return is_integral(dtype, false);
    default: return true;
  }
}

// Operators of two equal operands, where ATen also takes a number or another type for the second.
bool mixes(const Operator& op) {
  static constexpr std::string_view kNames[] = {
      "add",         "sub",        "rsub",        "mul",         "div",         "maximum",
      "minimum",     "fmax",       "fmin",        "atan2",       "copysign",    "pow",
      "eq",          "ne",         "lt",          "le",          "gt",          "ge",
      "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",  "bitwise_xor",
      "where",       "remainder",  "fmod",        "xlogy",       "floor_divide"};
  return std::find(std::begin(kNames), std::end(kNames), op.schema.name) != std::end(kNames);
}

// Operators that ATen lets write to an output of a wider type; many others refuse.
bool casts(const Operator& op) {
  return (mixes(op) && op.schema.name != "where") || rule_of(op) == TypeRule::Float;
}

// Sums of products keep the tolerance of real ones, with moduli for absolute values. A function of
// one complex number takes a few real ones, each as accurate as OpenCL C guarantees; a power takes
// them to an exponent that magnifies errors by up to |b log a|, about 20 here.
Tolerance complex_tolerance(const Operator& op, const PointwiseDomain* row) {
  if (op.schema.name == "abs")
    return {Scale::Unit, 4, 1, 1, nullptr, "hypot, of which OpenCL C allows 4 units"};
  if (row && (row->tolerance.scale == Scale::Bits ||
              (row->tolerance.scale == Scale::Exact && op.schema.name != "sgn") ||
              row->tolerance.scale == Scale::Absolute)) {
    Tolerance t = row->tolerance;
    t.k *= 2;
    return t;
  }
  const bool power = op.schema.name == "pow";
  return {Scale::Unit, power ? 256.0 : 24.0,
          1,           1,
          nullptr,     "a handful of real functions and products, by the modulus"};
}

// Results differ when the arguments are widened to float64.
bool depends_on_type(const Operator& op) {
  return op.schema.name == "nextafter" || op.schema.name == "nan_to_num";
}

// Arithmetic on complex numbers is tested by value: its special values are those of other tests.
Domain complex_domain(const PointwiseDomain* row) {
  const bool moves = row && (row->tolerance.scale == Scale::Bits);
  return moves ? Domain{-3, 3, 0.5, true, true} : Domain{-3, 3, 0, false, false};
}

struct Maker {
  const Operator& op;
  DType dtype;
  Draw& draw;
  const PointwiseDomain* row;
  Case c;

  Domain domain(size_t operand, DType type) const {
    if (is_complex(dtype)) return complex_domain(row);
    Domain d = row ? (operand == 0 ? row->first : row->other) : Domain{-4, 4, 0, true, false};
    if (!row && is_integral(type, true)) d = {-100, 100};
    // Integers become floating-point first, or have other operands of another type.
    if (rule_of(op) == TypeRule::Float) d.extremes = false;
    if (op.schema.name == "pow" && is_integral(dtype, true))
      d = operand == 0 ? Domain{-5, 5} : Domain{0, 5};
    return d;
  }

  // Multiples of 1/8 of small size: every type of the table holds them exactly, so that nothing
  // depends on the type in which a number is rounded.
  Scalar number(double low, double high, bool integral) {
    if (integral)
      return Scalar(draw.rng.range(static_cast<int64_t>(low), static_cast<int64_t>(high)));
    return Scalar(static_cast<double>(draw.rng.range(static_cast<int64_t>(low * 8),
                                                     static_cast<int64_t>(high * 8))) /
                  8);
  }

  Scalar operand_number(size_t operand) {
    const bool integral =
        is_integral(dtype, true) &&
        (rule_of(op) == TypeRule::Integral || rule_of(op) == TypeRule::IntegerOnly ||
         rule_of(op) == TypeRule::MaskedFill || op.schema.name == "pow" || draw.rng.chance(0.7));
    const Domain d = domain(operand, dtype);
    double low = std::max(d.low, -8.0);
    if (integral && dtype == DType::UInt8) low = std::max(low, 0.0);
    return number(low, std::min(d.high, 8.0), integral);
  }

  CaseValue parameter(const Argument& a) {
    auto& rng = draw.rng;
    const bool integral = is_integral(dtype, true);
    const std::string& n = a.name;
    if (a.optional && rng.chance(0.5)) return std::monostate{};
    if (a.type == ArgType::Bool) return Scalar(rng.chance(0.5));
    if (n == "alpha" && dtype == DType::Bool) return Scalar(int64_t{1});
    if (n == "alpha" && op.schema.name.starts_with("elu")) return number(0.5, 2, false);
    if (n == "alpha" || n == "value") return number(0, 3, integral);
    if (n == "n") return Scalar(rng.range(0, 3));
    if (n == "decimals") return Scalar(rng.range(-1, 2));
    if (n == "eps") return Scalar(0.125);
    if (n == "min_val") return number(dtype == DType::UInt8 ? 0 : -2, 0, integral);
    if (n == "max_val") return number(1, 3, integral);
    if (n == "threshold" && op.schema.name.starts_with("softplus")) return number(2, 20, false);
    if (n == "nan" || n == "posinf" || n == "neginf") return number(-8, 8, false);
    if (n == "threshold") return number(dtype == DType::UInt8 ? 0 : -1, 1, integral);
    return number(0.25, 2, false);
  }

  CaseValue text(const Argument& a) {
    if (a.name == "approximate") return std::string(draw.rng.chance(0.5) ? "none" : "tanh");
    // Only true division takes bool.
    if (dtype == DType::Bool || is_complex(dtype) || draw.rng.chance(0.33)) return std::monostate{};
    return std::string(draw.rng.chance(0.5) ? "trunc" : "floor");
  }

  DType operand_type(size_t operand) {
    const TypeRule rule = rule_of(op);
    if ((rule == TypeRule::Where && operand == 0) || (rule == TypeRule::MaskedFill && operand == 1))
      return DType::Bool;
    if (operand == 0 || !mixes(op) || !draw.rng.chance(0.15)) return dtype;
    if (is_complex(dtype)) {  // no type that makes it complex128
      constexpr DType kBeside[] = {DType::Float32, DType::BFloat16, DType::Int64, DType::Int8};
      return draw.rng.pick(kBeside);
    }
    const DType other = draw.rng.pick(kTestedTypes);
    return accepts(op, other) ? other : dtype;
  }

  void tensors(const std::vector<size_t>& operands) {
    const Dims shape = draw.shape(0, 6);
    // Where `self` is a number, the tensors begin with the second operand.
    const size_t first = op.schema.inputs[0].type == ArgType::Scalar ? 1 : 0;
    const bool number_ok = mixes(op) && operands.size() == 2;
    bool uniform = true;
    std::vector<DType> types;
    for (size_t k = 0; k < operands.size(); ++k) {
      types.push_back(operand_type(k));
      uniform = uniform && types[k] == types[0];
    }
    for (size_t k = 0; k < operands.size(); ++k) {
      const Argument& a = op.schema.inputs[operands[k]];
      CaseValue& slot = c.args[operands[k]];
      Domain d = domain(k + first, types[k]);
      d.extremes = d.extremes && (uniform || types[0] == DType::Bool);
      Dims sizes = k == 0 || draw.rng.chance(0.5) ? shape : draw.broadcastable(shape);
      if (op.schema.name == "masked_fill" && k == 2) sizes = {};
      if (op.schema.name.find("div") != std::string::npos && k == 1 && types[k] == DType::Bool)
        types[k] = dtype;  // a bool divisor can be 0
      if (op.schema.name == "pow" && types[k] != dtype) d = Domain{0, 3, 1, false, false};
      if (a.optional && draw.rng.chance(0.3) && (k < 2 || c.args[operands[1]].index() != 0))
        continue;
      if (k == 1 && number_ok && draw.rng.chance(0.15))
        slot = operand_number(k);
      else
        slot = draw.tensor(types[k], sizes, d);
    }
  }

  void run() {
    std::vector<size_t> operands;
    for (size_t i = 0; i < op.schema.inputs.size(); ++i) {
      const Argument& a = op.schema.inputs[i];
      const bool operand_scalar =
          a.type == ArgType::Scalar && (a.name == "other" || a.name == "self" ||
                                        a.name == "exponent" || a.name == "min" || a.name == "max");
      if (a.type == ArgType::Tensor)
        operands.push_back(i);
      else if (a.type == ArgType::String)
        c.args[i] = text(a);
      else if (operand_scalar)
        c.args[i] = operand_number(a.name == "self" ? 0 : 1);
      else
        c.args[i] = parameter(a);
    }
    if (op.schema.name == "clamp" && op.schema.overload == "out" && draw.rng.chance(0.3))
      c.set("max", std::monostate{});
    tensors(operands);
    finish(operands);
  }

  void finish(const std::vector<size_t>& operands) {
    if (row) c.tolerance = {row->tolerance};
    if (is_complex(dtype)) c.tolerance = {complex_tolerance(op, row)};
    c.same_type = depends_on_type(op);
    if (op.name == "round.decimals_out") c.tolerance = {{Scale::Unit, 8, 1, 1, nullptr, "scaled"}};
    const TensorSpec spec = infer(c).at(0);
    const auto* first = std::get_if<TensorPtr>(&c.args[operands[0]]);
    if (first && (*first)->value.dtype == spec.dtype && (*first)->value.sizes == spec.sizes &&
        !has_internal_overlap(spec.sizes, (*first)->layout.strides) && draw.rng.chance(0.12))
      c.alias = static_cast<int>(operands[0]);
    else if (casts(op) && draw.rng.chance(0.06))
      c.out_dtype = wider(spec.dtype);
  }

  std::optional<DType> wider(DType type) {
    if (is_complex(dtype)) return std::nullopt;
    const DType to = draw.rng.pick(kTestedTypes);
    // Only types that hold every value: casts to smaller ones are undefined for large values.
    if (!can_cast(type, to) || to == type || promote(type, to) != to) return std::nullopt;
    return to;
  }
};

Case make(const Operator& op, DType dtype, Draw& draw) {
  Maker maker{op, dtype, draw, find_pointwise_domain(op.schema.name, draw.rng),
              make_case(op, dtype)};
  maker.run();
  return std::move(maker.c);
}

}  // namespace

const FamilyCases& pointwise_cases() {
  static constexpr FamilyCases kCases = {"pointwise", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
