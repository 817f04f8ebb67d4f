// Launches an elementwise kernel: loop nest, specialisation, work division.
#include "elementwise.h"

#include <algorithm>

#include "base/iteration.h"
#include "call/scalar_bits.h"
#include "kernels/elementwise.h"
#include "pointwise_params.h"

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

// A loop nest. One of more dimensions than the kernels take runs as several launches over its
// outermost ones.
struct Nest {
  IterationSpace space;
  int64_t offsets[5] = {};  // elements, per operand
};

Defines defines_for(const ElementwiseLaunch& what, DType out, const Nest& nest) {
  Defines d;
  d.type(define::COMPUTE, what.compute).type(define::OUT, out);
  d.set(define::FLOATING, is_floating(what.compute))
      .set(define::UNSIGNED, is_unsigned(what.compute));
  d.set(define::EXPRESSION, what.formula->text).set(define::MAXIMUM, largest(what.limits));
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

// Divides rows into about 64 pieces of work, none of which costs less than its launch.
void divide_rows(PointwiseParams& p, int64_t& chunks, int64_t& groups) {
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 4096;
  const int64_t total = p.sizes[0] * p.rows;
  const int64_t piece = std::max(kSmallest, (total + kPieces - 1) / kPieces);
  if (p.sizes[0] >= piece || p.rows == 1) {
    p.chunk = (std::min(piece, p.sizes[0]) + 15) / 16 * 16;
    p.rows_per_item = 1;
  } else {
    p.chunk = p.sizes[0];
    p.rows_per_item = std::max<int64_t>(1, piece / p.sizes[0]);
  }
  chunks = (p.sizes[0] + p.chunk - 1) / p.chunk;
  groups = (p.rows + p.rows_per_item - 1) / p.rows_per_item;
}

// For 16-bit floats a work-item takes as many elements as 16 bytes hold: with four elements, a load
// or store of each would take more instructions than most formulas.
constexpr int64_t kVector = 8;
bool is_vectors(TensorView out, const ElementwiseLaunch& what, const Nest& nest) {
  const auto fits = [&](TensorView tensor) {
    const bool half = tensor.dtype() == DType::Float16 || tensor.dtype() == DType::BFloat16;
    return half && tensor.address() % (kVector * 2) == 0;
  };
  bool all = what.compute == DType::Float32 && fits(out);
  for (size_t k = 0; k < what.inputs.size(); ++k) {
    const ElementwiseInput& input = what.inputs[k];
    const bool contiguous = input.tensor != nullptr && nest.space.strides[k + 1][0] == 1;
    all = all && (!contiguous || (!input.is_condition && fits(*input.tensor)));
  }
  return all;
}

// Divides the elements for GPUs. Where the whole nest or its lines are contiguous, a work-item
// takes several elements, and short lines get smaller work-groups. Otherwise a work-item takes one
// element.
void divide_elements(const OpCall& call, TensorView out, const ElementwiseLaunch& what,
                     const Nest& nest, const PointwiseParams& p, Defines& d, Grid& global,
                     Grid& local) {
  constexpr int64_t kShortest = 256;  // shorter lines are not worth a division of their own
  const int64_t total = p.sizes[0] * p.rows;
  bool runs = nest.space.strides[0][0] == 1;
  for (size_t k = 1; k < nest.space.strides.size(); ++k)
    runs = runs && (nest.space.strides[k][0] == 0 || nest.space.strides[k][0] == 1);
  const bool flat = runs && p.rank == 1;
  const bool lines = runs && p.rank > 1 && p.sizes[0] >= kShortest;
  const bool vectors = flat && is_vectors(out, what, nest);
  if (flat) d.set(define::FLAT, 1);
  if (vectors) d.set(define::VEC, kVector);
  if (lines) d.set(define::LINES, 1);
  d.set(define::INDEX, total < (int64_t{1} << 31) ? "uint" : "ulong");
  local[0] = std::min<int64_t>(256, call.caps().max_work_group_size);
  while (lines && local[0] > 64 && local[0] * 4 > p.sizes[0]) local[0] /= 2;
  const int64_t per_group = local[0] * (vectors ? kVector : flat || lines ? 4 : 1);
  const int64_t run = lines ? p.sizes[0] : total;
  global[0] = (run + per_group - 1) / per_group * local[0] * (total / run);
}

// A launch before its work is divided: a nest of at most POINTWISE_RANK dimensions.
struct Problem {
  TensorView out;
  const ElementwiseLaunch& what;
  const Nest& nest;
};
struct Work {
  Grid global{1, 1, 1}, local{1, 1, 1};
};

PointwiseParams params_of(const ElementwiseLaunch& what, const Nest& nest) {
  PointwiseParams p{};
  p.rank = static_cast<int32_t>(nest.space.rank());
  p.rows = 1;
  for (size_t i = 0; i < nest.space.rank(); ++i) {
    p.sizes[i] = nest.space.sizes[i];
    if (i > 0) p.rows *= p.sizes[i];
    for (size_t k = 0; k < nest.space.strides.size(); ++k)
      p.strides[k][i] = nest.space.strides[k][i];
  }
  const DType type = real_type(what.compute);
  for (size_t k = 0; k < what.inputs.size(); ++k)
    p.numbers[k] = scalar_bits(what.inputs[k].value, type);
  for (size_t k = 0; k < what.parameters.size(); ++k)
    p.numbers[4 + k] = scalar_bits(what.parameters[k], type);
  return p;
}

ImaginaryParams imaginary_parts_of(const ElementwiseLaunch& what) {
  ImaginaryParams q{};
  const DType type = real_type(what.compute);
  for (size_t k = 0; k < what.inputs.size(); ++k)
    q.bits[k] = scalar_bits(what.inputs[k].value.imaginary(), type);
  for (size_t k = 0; k < what.parameters.size(); ++k)
    q.bits[4 + k] = scalar_bits(what.parameters[k].imaginary(), type);
  return q;
}

// The part of a tensor's memory that operand `k` of the nest accesses; 0 is the output.
MemoryRange reached(const Nest& nest, TensorView tensor, size_t k) {
  int64_t low = 0;
  int64_t high = 0;
  for (size_t i = 0; i < nest.space.rank(); ++i) {
    const int64_t reach = (nest.space.sizes[i] - 1) * nest.space.strides[k][i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t item = tensor.itemsize();
  return {tensor.address() + static_cast<uint64_t>(nest.offsets[k] * item), low * item,
          (high + 1) * item};
}
MemoryRange input(const Problem& problem, size_t k) {
  const auto inputs = problem.what.inputs;
  const TensorView* tensor = k < inputs.size() ? inputs[k].tensor : nullptr;
  return tensor == nullptr ? nullptr : reached(problem.nest, *tensor, k + 1);
}

template <typename Arguments>
void launch(const OpCall& call, const Problem& problem, const KernelOf<Arguments>& kernel,
            const Defines& d, const PointwiseParams& p, const Work& work) {
  call.launch(kernel, d,
              {.out = reached(problem.nest, problem.out, 0),
               .a = input(problem, 0),
               .b = input(problem, 1),
               .c = input(problem, 2),
               .d = input(problem, 3),
               .p = p})
      .run(work.global, work.local);
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
  if (form == FormulaForm::Special) d.set(define::SPECIAL, 1);
  if (what.compute == DType::Float32) d.set(define::FAST_EXP, 1);
  if (form == FormulaForm::Lanes || form == FormulaForm::Special) d.set(define::LANES, 1);
  if (form == FormulaForm::Trigonometric && call.caps().scalar_trigonometry)
    d.set(define::LANES_IF_LARGE, 1);
  Work work;
  divide_rows(p, work.global[0], work.global[1]);
  launch(call, problem, kernels::elementwise::elementwise_cpu::pointwise, d, p, work);
}

void run_elements(const OpCall& call, const Problem& problem) {
  const ElementwiseLaunch& what = problem.what;
  Defines d = defines_for(what, problem.out.dtype(), problem.nest);
  const PointwiseParams p = params_of(what, problem.nest);
  if (what.formula->form == FormulaForm::Special) d.set(define::SPECIAL, 1);
  Work work;
  divide_elements(call, problem.out, what, problem.nest, p, d, work.global, work.local);
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
  divide_rows(p, work.global[0], work.global[1]);
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
  Nest inner = nest;
  const int64_t count = inner.space.sizes.back();
  inner.space.sizes.pop_back();
  std::vector<int64_t> steps;
  for (Dims& s : inner.space.strides) {
    steps.push_back(s.back());
    s.pop_back();
  }
  for (int64_t i = 0; i < count; ++i) {
    run_nested(call, out, what, inner);
    for (size_t k = 0; k < steps.size(); ++k) inner.offsets[k] += steps[k];
  }
}

}  // namespace

const AlgorithmFamily& pointwise_algorithms() { return algorithms().family(); }

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
