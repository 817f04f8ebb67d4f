// Launches an elementwise kernel: loop nest, specialisation, choice, arguments.
#include "elementwise.h"

#include <algorithm>

#include "base/iteration.h"
#include "kernels/elementwise.h"
#include "work.h"

namespace ocltensor::opencl::elementwise {
namespace {

enum Kind : int64_t { kRepeated = 0, kContiguous = 1, kStrided = 2, kNumber = 3 };

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

Defines defines_for(const ElementwiseLaunch& what, DType out, const Nest& nest) {
  Defines d;
  d.type(define::OUT, out);
  d.set(define::FLOATING, is_floating(what.compute))
      .set(define::UNSIGNED, is_unsigned(what.compute));
  define_formula(d, *what.formula, what.compute, what.limits);
  if (what.test) d.set(define::TEST, 1);
  d.set(define::KIND_OUT, nest.space.strides[0][0] == 1 ? kContiguous : kStrided);
  for (size_t k = 0; k < 4; ++k) {
    Kind kind = kNumber;
    DType type = what.compute;
    if (k < what.inputs.size() && what.inputs[k].tensor != nullptr) {
      const int64_t stride = nest.space.strides[k + 1][0];
      kind = stride == 0 ? kRepeated : stride == 1 ? kContiguous : kStrided;
      type = what.inputs[k].is_condition ? DType::Bool : what.inputs[k].tensor->dtype();
    }
    d.type(kTypeNames[k], type).set(kKindNames[k], kind);
  }
  return d;
}

Defines complex_defines(const ElementwiseLaunch& what, DType out) {
  Defines d;
  d.set(define::EXPRESSION, what.formula->text).type(define::OUT, out);
  d.type(define::PART, real_type(what.compute));
  if (what.test) d.set(define::TEST, 1);
  for (size_t k = 0; k < 3; ++k) {
    const bool tensor = k < what.inputs.size() && what.inputs[k].tensor != nullptr;
    const bool truth = tensor && what.inputs[k].is_condition;
    d.type(kTypeNames[k], truth    ? DType::Bool
                          : tensor ? what.inputs[k].tensor->dtype()
                                   : what.compute);
    d.set(kKindNames[k], tensor ? kStrided : kNumber);
  }
  return d;
}

// A launch before its work is divided: a nest of at most POINTWISE_RANK dimensions.
struct Problem {
  TensorView out;
  const ElementwiseLaunch& what;
  const Nest& nest;
};

MemoryRange input(const Problem& problem, size_t k) {
  const auto inputs = problem.what.inputs;
  const TensorView* tensor = k < inputs.size() ? inputs[k].tensor : nullptr;
  return tensor == nullptr ? nullptr : reached(problem.nest, *tensor, k + 1);
}

using RowArguments = kernels::elementwise::ElementwiseCpuPointwiseArguments;
using ElementArguments = kernels::elementwise::ElementwiseGpuPointwiseArguments;
using Ranges = std::array<MemoryRange, 5>;  // out, a, b, c, d

// A kernel for CPUs has the offsets of its operands among its parameters.
template <typename Arguments>
Arguments arguments_of(const Ranges& ranges, PointwiseParams& p) {
  if constexpr (std::is_same_v<Arguments, RowArguments>) {
    std::array<cl_mem, 5> buffers{};
    for (size_t k = 0; k < ranges.size(); ++k) {
      if (ranges[k].address == 0) continue;
      const Place place = resolve(ranges[k].address, ranges[k].low, ranges[k].high);
      buffers[k] = place.buffer;
      p.offsets[k] = place.offset;
    }
    return {.m = buffers, .p = p};
  } else {
    return {
        .out = ranges[0], .a = ranges[1], .b = ranges[2], .c = ranges[3], .d = ranges[4], .p = p};
  }
}

template <typename Arguments>
void launch(const OpCall& call, const Problem& problem, const KernelOf<Arguments>& kernel,
            const Defines& d, PointwiseParams& p, const Work& work) {
  const Ranges ranges{reached(problem.nest, problem.out, 0), input(problem, 0), input(problem, 1),
                      input(problem, 2), input(problem, 3)};
  Launch launch = call.launch(kernel, d, arguments_of<Arguments>(ranges, p));
  launch.run(work.global, work.local);
  FlatWork* made = problem.what.made;
  if (made == nullptr || p.rank != 1 || p.strides[0][0] != 1 || launch.kernel().is_unready())
    return;
  *made = {&launch.kernel(), work.per_group, work.local[0]};
}

const char* refuse_complex(const OpCall&, const Problem& problem) {
  return is_complex(problem.what.compute) ? "numbers are complex" : nullptr;
}
const char* refuse_real(const OpCall&, const Problem& problem) {
  return is_complex(problem.what.compute) ? nullptr : "numbers are real";
}

void run_rows(const OpCall& call, const Problem& problem) {
  const ElementwiseLaunch& what = problem.what;
  const FormulaForm form = what.formula->form;
  Defines d = defines_for(what, problem.out.dtype(), problem.nest);
  PointwiseParams p = params_of(what, problem.nest);
  if (what.compute == DType::Float32) d.set(define::FAST_EXP, 1);
  define_vector_form(d, *what.formula);
  if (form == FormulaForm::Trigonometric && call.caps().scalar_trigonometry)
    d.set(define::LANES_IF_LARGE, 1);
  Work work;
  divide_rows(p, work);
  launch(call, problem, kernels::elementwise::elementwise_cpu::pointwise, d, p, work);
}

void run_elements(const OpCall& call, const Problem& problem) {
  const ElementwiseLaunch& what = problem.what;
  Defines d = defines_for(what, problem.out.dtype(), problem.nest);
  PointwiseParams p = params_of(what, problem.nest);
  Work work;
  divide_elements(call.caps(), problem.out, what, problem.nest, p, d, work);
  launch(call, problem, kernels::elementwise::elementwise_gpu::pointwise, d, p, work);
}

void launch_complex(const OpCall& call, const Problem& problem, Defines& d,
                    const PointwiseParams& p, const Work& work) {
  if (problem.what.formula->form == FormulaForm::Special) d.set(define::SPECIAL, 1);
  call.launch(kernels::elementwise::elementwise_complex::pointwise, d,
              {.out = reached(problem.nest, problem.out, 0),
               .a = input(problem, 0),
               .b = input(problem, 1),
               .c = input(problem, 2),
               .p = p,
               .q = imaginary_parts_of(problem.what)})
      .run(work.global, work.local);
}
void run_complex_rows(const OpCall& call, const Problem& problem) {
  Defines d = complex_defines(problem.what, problem.out.dtype());
  PointwiseParams p = params_of(problem.what, problem.nest);
  Work work;
  divide_rows(p, work);
  launch_complex(call, problem, d, p, work);
}
void run_complex_elements(const OpCall& call, const Problem& problem) {
  Defines d = complex_defines(problem.what, problem.out.dtype());
  const PointwiseParams p = params_of(problem.what, problem.nest);
  const int64_t total = p.sizes[0] * p.rows;
  d.set(define::FLAT, p.rank == 1)
      .set(define::INDEX, total < (int64_t{1} << 31) ? "uint" : "ulong");
  Work work;
  work.local[0] = std::min<int64_t>(256, call.caps().max_work_group_size);
  work.global[0] = (total + work.local[0] - 1) / work.local[0] * work.local[0];
  launch_complex(call, problem, d, p, work);
}

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

struct Traits {
  static std::string describe(const OpCall& call, const Problem& problem) {
    return fmt::format("{} {} {} {}", call.name(), problem.what.formula->name,
                       name(problem.what.compute), to_string(problem.out.sizes()));
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

// The common case, for which no dimension has to be looked at: all tensors are contiguous and have
// the output's shape.
bool is_flat(TensorView out, std::span<const ElementwiseInput> inputs) {
  return out.is_contiguous() && std::ranges::all_of(inputs, [&](const ElementwiseInput& input) {
           return input.tensor == nullptr ||
                  (std::ranges::equal(input.tensor->sizes(), out.sizes()) &&
                   input.tensor->is_contiguous());
         });
}

Nest flat_nest(TensorView out, std::span<const ElementwiseInput> inputs) {
  Nest nest;
  nest.space.numel = out.numel();
  nest.space.sizes.push_back(nest.space.numel);
  nest.space.strides.reserve(1 + inputs.size());
  nest.space.strides.emplace_back(1, 1);
  for (const ElementwiseInput& input : inputs)
    nest.space.strides.emplace_back(1, input.tensor == nullptr ? 0 : 1);
  return nest;
}

void run_nested(const OpCall& call, TensorView out, const ElementwiseLaunch& what,
                const Nest& nest) {
  if (nest.space.rank() <= POINTWISE_RANK) return algorithms().run(call, {out, what, nest});
  for_each_part(nest.space, POINTWISE_RANK,
                [&](const IterationSpace& part, std::span<const int64_t> offsets) {
                  Nest inner{part, {}};
                  std::ranges::copy(offsets, inner.offsets);
                  algorithms().run(call, {out, what, inner});
                });
}

}  // namespace

void define_formula(Defines& d, const Formula& formula, DType compute, DType limits) {
  d.type(define::COMPUTE, compute).set(define::EXPRESSION, formula.text);
  d.set(define::MAXIMUM, largest(limits));
  if (formula.form == FormulaForm::Special) d.set(define::SPECIAL, 1);
}
void define_vector_form(Defines& d, const Formula& formula) {
  const bool lanes = formula.form == FormulaForm::Lanes || formula.form == FormulaForm::Special;
  if (lanes) d.set(define::LANES, 1);
}

const AlgorithmFamily& pointwise_algorithms() { return algorithms().family(); }

void repeat_flat(const OpCall& call, const FlatWork& work, std::span<const FlatOperand, 5> operands,
                 std::span<const uint64_t, 8> numbers, int64_t count) {
  PointwiseParams p{};
  p.rank = 1;
  p.rows = 1;
  p.sizes[0] = count;
  for (size_t k = 0; k < operands.size(); ++k) p.strides[k][0] = operands[k].address != 0;
  std::ranges::copy(numbers, p.numbers);
  Ranges ranges{nullptr, nullptr, nullptr, nullptr, nullptr};
  for (size_t k = 0; k < operands.size(); ++k)
    if (operands[k].address != 0) ranges[k] = {operands[k].address, 0, count * operands[k].item};
  Work division;
  const bool rows = work.per_group == 0;
  Launch launch(call.stream(), *work.kernel);
  if (rows) {
    divide_rows(p, division);
    arguments_of<RowArguments>(ranges, p).bind(launch);
  } else {
    division.global[0] = (count + work.per_group - 1) / work.per_group * work.local;
    division.local[0] = work.local;
    arguments_of<ElementArguments>(ranges, p).bind(launch);
  }
  launch.run(division.global, division.local);
  algorithms().count(rows ? kRows : kElements);
}

void launch_elementwise(const OpCall& call, TensorView out, const ElementwiseLaunch& what) {
  if (out.numel() == 0) return;
  if (is_flat(out, what.inputs))
    return algorithms().run(call, {out, what, flat_nest(out, what.inputs)});
  std::vector<Dims> strides;
  strides.reserve(1 + what.inputs.size());
  strides.emplace_back(out.strides());
  for (const ElementwiseInput& input : what.inputs)
    strides.push_back(
        input.tensor == nullptr
            ? Dims(out.sizes().size(), 0)
            : broadcast_strides(input.tensor->sizes(), input.tensor->strides(), out.sizes()));
  run_nested(call, out, what, {make_iteration(out.sizes(), strides), {}});
}

}  // namespace ocltensor::opencl::elementwise
