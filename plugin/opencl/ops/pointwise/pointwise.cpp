// Pointwise operators: one function for every row of pointwise.def that has a formula in
// expressions.def.
#include "pointwise.h"

#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "base/pointwise.h"
#include "ops/copy/copy.h"
#include "ops/reduce/complex.h"
#include "plans.h"
#include "zero_divisor.h"

namespace ocltensor::opencl::pointwise {
namespace {

constexpr elementwise::Formula kFormulas[] = {
#define OCLTENSOR_EXPRESSION(name, form, ...) {name, elementwise::FormulaForm::form, #__VA_ARGS__},
#include "expressions.def"
#undef OCLTENSOR_EXPRESSION
};

constexpr elementwise::Formula kComplexFormulas[] = {
#define OCLTENSOR_COMPLEX(name, ...) {name, elementwise::FormulaForm::Lanes, #__VA_ARGS__},
#include "complex.def"
#undef OCLTENSOR_COMPLEX
};

constexpr elementwise::Formula kFloat64Formulas[] = {
#define OCLTENSOR_TEXT(...) #__VA_ARGS__  // expands the macros of the table
#define OCLTENSOR_FLOAT64_BITS(name, ...) \
  {name, elementwise::FormulaForm::Vector, OCLTENSOR_TEXT(__VA_ARGS__)},
#include "float64_bits.def"
#undef OCLTENSOR_FLOAT64_BITS
#undef OCLTENSOR_TEXT
};

using Index = std::unordered_map<std::string_view, const elementwise::Formula*>;
Index index_of(std::span<const elementwise::Formula> formulas) {
  Index index;
  for (const elementwise::Formula& f : formulas) index.emplace(f.name, &f);
  return index;
}

const elementwise::Formula* find_in(const Index& index, std::string_view name) {
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}
const elementwise::Formula* find_exact(const std::string& name) {
  static const auto& index = *new Index(index_of(kFormulas));
  return find_in(index, name);
}
const elementwise::Formula* find_complex(const std::string& name) {
  static const auto& index = *new Index(index_of(kComplexFormulas));
  return find_in(index, name);
}

const elementwise::Formula* find_float64_bits(std::string_view name) {
  static const auto& index = *new Index(index_of(kFloat64Formulas));
  return find_in(index, name);
}

// The formula for a power with one of a few constant exponents, or nullptr.
const elementwise::Formula* find_power(const PointwiseCall& call) {
  struct Powers {
    const PointwiseRow* row = nullptr;
    std::array<const elementwise::Formula*, 6> by_exponent{};  // from -2
    std::array<const elementwise::Formula*, 6> complex{};
  };
  static const Powers powers = [] {
    Powers p;
    for (const PointwiseRow& row : pointwise_rows())
      if (row.name == "pow.Tensor_Scalar_out") p.row = &row;
    for (size_t i = 0; i < p.by_exponent.size(); ++i) {
      const std::string name = fmt::format("{}={}", p.row->name, static_cast<int>(i) - 2);
      p.by_exponent[i] = find_exact(name);
      p.complex[i] = find_complex(name);
    }
    return p;
  }();
  if (call.row != powers.row) return nullptr;
  const double place = call.operands[1].value.as_double() + 2;
  const bool found = place >= 0 && place < 6 && std::floor(place) == place &&
                     call.operands[1].value.imaginary() == 0;
  if (!found) return nullptr;
  return (is_complex(call.compute) ? powers.complex
                                   : powers.by_exponent)[static_cast<size_t>(place)];
}

// A call with float64 tensors on a device without the type: operands have one type, float64 is
// passed as bits, for which `what` has the formula.
void launch_without_float64(const OpCall& call, TensorView out,
                            elementwise::ElementwiseLaunch what) {
  const bool bits = what.compute == DType::Float64;
  const auto number = [&](Scalar value) {
    return bits ? Scalar(std::bit_cast<int64_t>(value.as_double())) : value;
  };
  std::deque<reduce::Converted> converted;
  std::deque<LocalTensor> moved;
  std::deque<TensorView> views;
  std::array<elementwise::ElementwiseInput, kMaxOperands> inputs;
  std::array<Scalar, kMaxOperands> parameters{0, 0, 0, 0};
  for (size_t k = 0; k < what.parameters.size(); ++k) parameters[k] = number(what.parameters[k]);
  for (size_t k = 0; k < what.inputs.size(); ++k) {
    inputs[k] = what.inputs[k];
    inputs[k].value = number(inputs[k].value);
    if (inputs[k].tensor == nullptr || inputs[k].is_condition) continue;
    const TensorView own = *inputs[k].tensor;
    const bool convert = bits || own.dtype() == DType::Float64;
    converted.emplace_back(call, own, convert ? what.compute : own.dtype());
    moved.push_back(copy::as_moved(call, converted.back().view()));
    inputs[k].tensor = &views.emplace_back(moved.back().view());
  }
  what.inputs = std::span(inputs).first(what.inputs.size());
  what.parameters = std::span(parameters).first(what.parameters.size());
  const DType result = what.test ? DType::Bool : what.limits;
  if (bits) what.compute = what.limits = DType::Int64;
  const bool direct = out.dtype() == result || !(call.lacks(result) || call.lacks(out.dtype()));
  if (direct) return elementwise::launch_elementwise(call, copy::as_moved(call, out), what);
  const Scratch memory = call.scratch(static_cast<uint64_t>(out.numel() * size_of(result)));
  const LocalTensor own(memory.address(), result, Dims(out.sizes()));
  elementwise::launch_elementwise(call, copy::as_moved(call, own), what);
  copy_tensor(call, out, own);
}

bool lacks_any(const OpCall& call, const PointwiseCall& resolved) {
  if (call.caps().fp64) return false;
  bool any = call.lacks(resolved.compute) || call.lacks(call.out(0).dtype());
  for (int k = 0; k < resolved.operand_count; ++k)
    any = any || (!resolved.operands[k].is_number &&
                  call.lacks(call.args().tensor(resolved.operands[k].argument).dtype()));
  return any;
}

// The formula that computes the call; declines it if there is none. `soft`: types are missing on
// the device.
const elementwise::Formula& choose_formula(const OpCall& call, const PointwiseCall& resolved,
                                           bool soft) {
  const elementwise::Formula* formula = find_power(resolved);
  if (formula == nullptr) formula = find_formula(*resolved.row, resolved.compute);
  if (formula == nullptr && is_complex(resolved.compute))
    unsupported(TB_REASON_DTYPE, "{} has no formula for complex numbers", resolved.row->name);
  if (formula == nullptr)
    unsupported(TB_REASON_OPERATOR, "{} has no OpenCL formula yet", resolved.row->name);
  if (soft && call.lacks(resolved.compute)) formula = find_float64_bits(resolved.row->name);
  if (formula == nullptr) call.need(DType::Float64);
  if (soft && (is_complex(resolved.compute) || is_complex(call.out(0).dtype())))
    unsupported(TB_REASON_DTYPE, "{}: complex numbers with float64 on a device without float64",
                call.name());
  static const elementwise::Formula* const next_after = find_exact("nextafter.out");
  if (resolved.result != resolved.compute && formula == next_after)
    formula = find_exact(fmt::format("nextafter.out@{}", name(resolved.result)));
  return *formula;
}

// The operands in place, for as long as the call.
struct Operands {
  std::array<std::optional<TensorView>, kMaxOperands> tensors;
  std::array<elementwise::ElementwiseInput, kMaxOperands> inputs;
  std::array<int8_t, kMaxOperands> arguments{-1, -1, -1, -1};  // of those that are tensors
  Dims shape;                                                  // the common one

  Operands(const OpCall& call, const PointwiseCall& resolved) {
    for (size_t k = 0; k < static_cast<size_t>(resolved.operand_count); ++k) {
      const auto& operand = resolved.operands[k];
      inputs[k].is_condition = operand.is_condition;
      if (operand.is_number) {
        inputs[k].value = operand.value;
        continue;
      }
      arguments[k] = call.op().schema.positions[static_cast<size_t>(operand.argument)];
      tensors[k] = call.args().tensor(operand.argument);
      inputs[k].tensor = &*tensors[k];
      check(!operand.is_condition || size_of(tensors[k]->dtype()) == 1,
            "{}: the condition must be bool, got {}", call.name(), name(tensors[k]->dtype()));
      check(!is_complex(tensors[k]->dtype()) || is_complex(resolved.compute),
            "{}: a complex operand cannot be converted to {}", call.name(), name(resolved.result));
      const auto sizes = tensors[k]->sizes();
      if (!same(shape, sizes)) shape = shape.empty() ? Dims(sizes) : broadcast(shape, sizes);
    }
  }
  Operands(const Operands&) = delete;  // `inputs` point to `tensors`
};

void check_output(const OpCall& call, const PointwiseCall& resolved, const Dims& shape) {
  const TensorView out = call.out(0);
  check(same(out.sizes(), shape), "{}: the output has shape {}, expected {}", call.name(),
        to_string(out.sizes()), to_string(shape));
  check(can_cast(resolved.result, out.dtype()), "{}: a result of type {} cannot be cast to {}",
        call.name(), name(resolved.result), name(out.dtype()));
}

void check_numbers(const OpCall& call, const PointwiseCall& resolved, bool divides) {
  if (resolved.rule == TypeRule::MaskedFill)
    for (int k = 0; k < resolved.parameter_count; ++k)
      check_fits(resolved.parameters[static_cast<size_t>(k)], resolved.result);
  check(!divides || !resolved.operands[1].is_number || resolved.operands[1].value.as_double() != 0,
        "ZeroDivisionError: {} divides integers by zero", call.name());
}

// A call that was not there before: it is resolved, and its plan kept, unless there is more to it
// than a plan.
void run_new(const OpCall& call, const PlanKey& key) {
  const PointwiseCall resolved = resolve_pointwise(call.args());
  const bool soft = lacks_any(call, resolved);
  const elementwise::Formula& formula = choose_formula(call, resolved, soft);
  const Operands operands(call, resolved);
  check_output(call, resolved, operands.shape);
  const bool divides = resolved.rule == TypeRule::Quotient && is_integral(resolved.compute, true);
  check_numbers(call, resolved, divides);
  call.accept();
  if (divides && operands.tensors[1]) report_zero_divisor(call, *operands.tensors[1]);
  const TensorView out = call.out(0);
  const elementwise::ElementwiseLaunch what{
      &formula,
      resolved.compute,
      resolved.result,
      resolved.rule == TypeRule::Compare,
      std::span(operands.inputs).first(static_cast<size_t>(resolved.operand_count)),
      std::span(resolved.parameters).first(static_cast<size_t>(resolved.parameter_count))};
  if (soft) return launch_without_float64(call, out, what);
  if (out.numel() == 0) return;
  // A bool is 0 or 1 before it is converted: true + true is 1, also as an integer.
  const bool truth = resolved.result == DType::Bool && out.dtype() != DType::Bool && !what.test;
  if (!truth && (!is_complex(out.dtype()) || is_complex(resolved.compute))) {
    PlannedCall planned{elementwise::make_plan(out, what), operands.arguments};
    elementwise::run_plan(call, planned.plan, elementwise::addresses_of(out, what.inputs), out);
    if (!divides) keep_plan(key, std::move(planned));
    return;
  }
  // So are real results for a complex output.
  const Scratch memory =
      call.scratch(static_cast<uint64_t>(out.numel() * size_of(resolved.result)));
  const LocalTensor result(memory.address(), resolved.result, operands.shape);
  elementwise::launch_elementwise(call, result, what);
  copy_tensor(call, out, result);
}

void pointwise(OpCall& call) {
  const PlanKey key(call);
  PlannedCall* const planned = find_plan(key);
  if (planned == nullptr) return run_new(call, key);
  call.accept();
  repeat(call, key, *planned);
}

}  // namespace

const elementwise::Formula* find_formula(const PointwiseRow& row, DType compute) {
  if (is_complex(compute)) return find_complex(row.name);
  struct Formulas {
    const elementwise::Formula* plain;
    const elementwise::Formula* integral;
  };
  static const auto& table = *new auto([] {
    std::vector<Formulas> list;
    for (const PointwiseRow& r : pointwise_rows()) {
      const elementwise::Formula* plain = find_exact(r.name);
      const elementwise::Formula* integral =
          plain == nullptr ? nullptr : find_exact(r.name + "@int");
      list.push_back({plain, integral != nullptr ? integral : plain});
    }
    return list;
  }());
  return is_integral(compute, true) ? table[row.index].integral : table[row.index].plain;
}

const elementwise::Formula& formula_of(const std::string& row) {
  const elementwise::Formula* const found = find_exact(row);
  if (found == nullptr) fail(TB_E_INTERNAL, "{} has no formula", row);
  return *found;
}

std::span<const OpEntry> pointwise_operators() {
  static const auto& entries = *new auto([] {
    std::vector<OpEntry> list;
    for (const Operator& op : operators())
      if (std::string_view(op.family) == "pointwise" && find_exact(op.name) != nullptr)
        list.push_back({op.name.c_str(), pointwise, find_complex(op.name) != nullptr, true, true});
    return list;
  }());
  return entries;
}

}  // namespace ocltensor::opencl::pointwise
