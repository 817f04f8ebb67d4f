// Runs a plan: the kernel's specialisation, choice, arguments.
#include "elementwise.h"

#include "kernels/elementwise.h"
#include "plan.h"
#include "work.h"

namespace ocltensor::opencl::elementwise {
namespace {

constexpr DefineName kTypeNames[] = {define::A, define::B, define::C, define::D};
constexpr DefineName kKindNames[] = {define::KIND_A, define::KIND_B, define::KIND_C,
                                     define::KIND_D};

const char* largest(DType type) {
  switch (type) {
    case DType::Float16: return "65504.0f";
    case DType::BFloat16: return "3.3895313892515355e38f";
    case DType::Float64:
    case DType::Complex128: return "DBL_MAX";
    default: return "FLT_MAX";
  }
}

// A plan that is to be run for the first time, or again with a choice of its algorithm.
struct Problem {
  PointwisePlan& plan;
  const Addresses& addresses;
  TensorView out;
};

Defines defines_for(const PointwisePlan& plan) {
  Defines d;
  d.type(define::COMPUTE, plan.compute)
      .set(define::FLOATING, is_floating(plan.compute))
      .set(define::UNSIGNED, is_unsigned(plan.compute));
  define_formula(d, *plan.formula, plan.limits);
  if (plan.test) d.set(define::TEST, 1);
  d.type(define::OUT, plan.operands[0].type);
  for (size_t k = 0; k < 4; ++k)
    d.type(kTypeNames[k], plan.operands[k + 1].type)
        .set(kKindNames[k], static_cast<int64_t>(plan.operands[k + 1].kind));
  return d;
}

Defines complex_defines(const PointwisePlan& plan) {
  Defines d;
  d.set(define::EXPRESSION, plan.formula->text).type(define::OUT, plan.operands[0].type);
  d.type(define::PART, real_type(plan.compute));
  if (plan.formula->form == FormulaForm::Special) d.set(define::SPECIAL, 1);
  if (plan.test) d.set(define::TEST, 1);
  for (size_t k = 0; k < 3; ++k) {
    const auto kind = plan.is_tensor(k + 1) ? OperandKind::Strided : OperandKind::Number;
    d.type(kTypeNames[k], plan.operands[k + 1].type).set(kKindNames[k], static_cast<int64_t>(kind));
  }
  return d;
}

MemoryRange range_of(const PointwisePlan& plan, const Addresses& addresses, size_t k) {
  const PlannedOperand& operand = plan.operands[k];
  return addresses[k] == 0 ? nullptr : MemoryRange{addresses[k], operand.low, operand.high};
}

using RowArguments = kernels::elementwise::ElementwiseCpuPointwiseArguments;
using ElementArguments = kernels::elementwise::ElementwiseGpuPointwiseArguments;
using ComplexArguments = kernels::elementwise::ElementwiseComplexPointwiseArguments;

template <typename Arguments>
Arguments arguments_of(PointwisePlan& plan, const Addresses& addresses) {
  const auto range = [&](size_t k) { return range_of(plan, addresses, k); };
  if constexpr (std::is_same_v<Arguments, RowArguments>) {
    // A kernel for CPUs has the offsets of its operands among its parameters.
    std::array<cl_mem, 5> buffers{};
    for (size_t k = 0; k < buffers.size(); ++k) {
      if (addresses[k] == 0) continue;
      const Place place = resolve(addresses[k], plan.operands[k].low, plan.operands[k].high);
      buffers[k] = place.buffer;
      plan.params.offsets[k] = place.offset;
    }
    return {.m = buffers, .p = plan.params};
  } else if constexpr (std::is_same_v<Arguments, ElementArguments>) {
    return {.out = range(0),
            .a = range(1),
            .b = range(2),
            .c = range(3),
            .d = range(4),
            .p = plan.params};
  } else {
    return {.out = range(0),
            .a = range(1),
            .b = range(2),
            .c = range(3),
            .p = plan.params,
            .q = plan.imaginary};
  }
}

// Enqueues a plan's kernel: once for each position in the dimensions that the kernel does not take.
template <typename Arguments>
void enqueue(const OpCall& call, PointwisePlan& plan, const Addresses& addresses) {
  const auto enqueue_part = [&](const Addresses& part) {
    Launch launch(call.stream(), *plan.kernel);
    arguments_of<Arguments>(plan, part).bind(launch);
    launch.run(plan.global, plan.local);
  };
  if (plan.nest == nullptr) [[likely]]
    return enqueue_part(addresses);
  for_each_part(*plan.nest, POINTWISE_RANK,
                [&](const IterationSpace&, std::span<const int64_t> offsets) {
                  Addresses part = addresses;
                  for (size_t k = 0; k < offsets.size(); ++k)
                    part[k] += static_cast<uint64_t>(offsets[k] * plan.operands[k].itemsize);
                  enqueue_part(part);
                });
}

// Finds the plan's kernel, and runs it.
template <typename Arguments>
void run(const OpCall& call, const Problem& problem, const Algorithm& algorithm,
         const KernelOf<Arguments>& kernel, const Defines& d) {
  PointwisePlan& plan = problem.plan;
  plan.algorithm = &algorithm;
  plan.kernel = &find_kernel(call.stream(), kernel.source, kernel.function, d);
  plan.enqueue = enqueue<Arguments>;
  plan.enqueue(call, plan, problem.addresses);
}

const char* refuse_complex(const OpCall&, const Problem& problem) {
  return is_complex(problem.plan.compute) ? "numbers are complex" : nullptr;
}
const char* refuse_real(const OpCall&, const Problem& problem) {
  return is_complex(problem.plan.compute) ? nullptr : "numbers are real";
}

void run_rows(const OpCall& call, const Problem& problem);
void run_elements(const OpCall& call, const Problem& problem);
void run_complex_rows(const OpCall& call, const Problem& problem);
void run_complex_elements(const OpCall& call, const Problem& problem);

// None can replace another, so that each is a last resort.
constinit const AlgorithmFor<Problem> kRows({.id = "pointwise.rows",
                                             .description = "rows of vectors for each work-item",
                                             .style = DeviceStyle::Cpu,
                                             .last_resort = true},
                                            Steps<refuse_complex, run_rows>());
constinit const AlgorithmFor<Problem> kElements(
    {.id = "pointwise.elements",
     .description = "an element, or a vector of 16 bytes, for each work-item",
     .style = DeviceStyle::Gpu,
     .last_resort = true},
    Steps<refuse_complex, run_elements>());
constinit const AlgorithmFor<Problem> kComplexRows({.id = "pointwise.complex_rows",
                                                    .description = "complex numbers, rows",
                                                    .style = DeviceStyle::Cpu,
                                                    .last_resort = true},
                                                   Steps<refuse_real, run_complex_rows>());
constinit const AlgorithmFor<Problem> kComplexElements({.id = "pointwise.complex_elements",
                                                        .description = "complex numbers, elements",
                                                        .style = DeviceStyle::Gpu,
                                                        .last_resort = true},
                                                       Steps<refuse_real, run_complex_elements>());

void run_rows(const OpCall& call, const Problem& problem) {
  PointwisePlan& plan = problem.plan;
  Defines d = defines_for(plan);
  d.set(define::KIND_OUT, static_cast<int64_t>(plan.operands[0].kind));
  define_rows(call.caps(), d, *plan.formula, plan.compute);
  divide_rows(plan);
  run(call, problem, kRows, kernels::elementwise::elementwise_cpu::pointwise, d);
}
void run_elements(const OpCall& call, const Problem& problem) {
  Defines d = defines_for(problem.plan);
  divide_elements(call.caps(), problem.addresses, problem.plan, d);
  run(call, problem, kElements, kernels::elementwise::elementwise_gpu::pointwise, d);
}
void run_complex_rows(const OpCall& call, const Problem& problem) {
  divide_rows(problem.plan);
  run(call, problem, kComplexRows, kernels::elementwise::elementwise_complex::pointwise,
      complex_defines(problem.plan));
}
void run_complex_elements(const OpCall& call, const Problem& problem) {
  Defines d = complex_defines(problem.plan);
  divide_single_elements(call.caps(), problem.plan, d);
  run(call, problem, kComplexElements, kernels::elementwise::elementwise_complex::pointwise, d);
}

struct Traits {
  static std::string describe(const OpCall& call, const Problem& problem) {
    return fmt::format("{} {} {} {}", call.name(), problem.plan.formula->name,
                       name(problem.plan.compute), to_string(problem.out.sizes()));
  }
};
using Algorithms = AlgorithmList<Problem, Traits>;

// Operators of the family `pointwise`, by name; operators of other families launch formulas, too.
std::span<const OpEntry> served() {
  static const auto& list = *new auto([] {
    std::vector<OpEntry> names;
    for (const Operator& op : operators())
      if (std::string_view(op.family) == "pointwise") names.push_back({op.name.c_str(), nullptr});
    return names;
  }());
  return list;
}

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(
      "pointwise", served(), {&kRows, &kElements, &kComplexRows, &kComplexElements});  // leaked
  return list;
}

}  // namespace

void define_formula(Defines& d, const Formula& formula, DType limits) {
  d.set(define::EXPRESSION, formula.text).set(define::MAXIMUM, largest(limits));
  if (formula.form == FormulaForm::Special) d.set(define::SPECIAL, 1);
}
void define_vector_form(Defines& d, const Formula& formula) {
  const bool lanes = formula.form == FormulaForm::Lanes || formula.form == FormulaForm::Special;
  if (lanes) d.set(define::LANES, 1);
}
void define_rows(const Capabilities& caps, Defines& d, const Formula& formula, DType compute) {
  if (compute == DType::Float32) d.set(define::FAST_EXP, 1);
  define_vector_form(d, formula);
  if (formula.form == FormulaForm::Trigonometric && caps.scalar_trigonometry)
    d.set(define::LANES_IF_LARGE, 1);
}

const AlgorithmFamily& pointwise_algorithms() { return algorithms().family(); }

void run_plan(const OpCall& call, PointwisePlan& plan, const Addresses& addresses, TensorView out) {
  algorithms().run(call, {plan, addresses, out});
}

void repeat_plan(const OpCall& call, PointwisePlan& plan, const Addresses& addresses,
                 int64_t count) {
  if (plan.is_flat && plan.params.sizes[0] != count) {
    set_count(plan, count);
    plan.per_group == 0 ? divide_rows(plan) : divide_into_groups(plan);
  }
  plan.enqueue(call, plan, addresses);
  algorithms().count(*plan.algorithm);
}

void launch_elementwise(const OpCall& call, TensorView out, const ElementwiseLaunch& what) {
  if (out.numel() == 0) return;
  PointwisePlan plan = make_plan(out, what);
  run_plan(call, plan, addresses_of(out, what.inputs), out);
}

}  // namespace ocltensor::opencl::elementwise
