// Launches reductions: builds the loop nests, chooses the kernel, joins pieces in a second pass.
#include "reduction.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/infer/common.h"
#include "base/iteration.h"
#include "base/promotion.h"
#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/scalar_bits.h"
#include "kernels/reduce.h"
#include "reduce_params.h"
#include "reduction_cut.h"

namespace ocltensor::opencl::reduce {
namespace {

using ReduceAlgorithm = AlgorithmFor<Problem>;

// The strides of an output for the dimensions that are kept, 0 for the others.
Dims spread(TensorView out, const ReduceLaunch& what) {
  Dims strides;
  const bool keeps = out.sizes().size() == what.shape.size();
  size_t next = 0;
  for (size_t d = 0; d < what.shape.size(); ++d) {
    const bool reduced = what.mask[d];
    strides.push_back(reduced ? 0 : out.strides()[keeps ? d : next]);
    next += !reduced;
  }
  return strides;
}

Problem problem_of(const ReduceLaunch& what) {
  std::vector<Dims> strides;
  for (const TensorView* in : what.inputs)
    strides.push_back(in == nullptr ? Dims(what.shape.size(), 0)
                                    : broadcast_strides(in->sizes(), in->strides(), what.shape));
  for (const TensorView* out : what.outs)
    strides.push_back(out == nullptr ? Dims(what.shape.size(), 0) : spread(*out, what));
  Dims sizes[2];
  std::vector<Dims> nests[2] = {std::vector<Dims>(kOperands), std::vector<Dims>(kOperands - 2)};
  for (size_t d = 0; d < what.shape.size(); ++d) {
    const size_t reduced = what.mask[d];
    sizes[reduced].push_back(what.shape[d]);
    for (size_t k = 0; k < nests[reduced].size(); ++k) nests[reduced][k].push_back(strides[k][d]);
  }
  Problem p{what, make_iteration(sizes[0], nests[0]), make_iteration(sizes[1], nests[1])};
  const int64_t down = std::abs(p.reduced.strides[0][0]);
  const int64_t along = std::abs(p.kept.strides[0][0]);
  if (down != 1 && along == 1 && p.kept.sizes[0] > 1) p.columns = true;
  // Sums are too short for vectors, but the outputs are contiguous.
  if (p.reduced.numel < 4 && p.reduced.rank() == 1 && p.kept.sizes[0] >= 64) p.columns = true;
  if (p.reduced.numel == 0) p.columns = false;
  return p;
}

int64_t kind_of(const TensorView* in, int64_t stride) {
  return in == nullptr ? 3 : stride == 0 ? 0 : stride == 1 ? 1 : 2;
}

void fill_nests(ReduceParams& p, const Problem& plan) {
  p.kept_rank = static_cast<int32_t>(plan.kept.rank());
  p.rank = static_cast<int32_t>(plan.reduced.rank());
  for (size_t i = 0; i < plan.kept.rank(); ++i) {
    p.kept_sizes[i] = plan.kept.sizes[i];
    for (size_t k = 0; k < kOperands; ++k) p.kept_strides[k][i] = plan.kept.strides[k][i];
  }
  for (size_t i = 0; i < plan.reduced.rank(); ++i) {
    p.sizes[i] = plan.reduced.sizes[i];
    for (size_t k = 0; k < kOperands - 2; ++k) p.strides[k][i] = plan.reduced.strides[k][i];
  }
}

enum class Style : uint8_t { Rows, Columns, Gpu };

// `last`: the kernel writes results, not partial ones. A kind says how an operand steps along the
// innermost dimension (CPU kernels), or whether the operand exists.
Defines defines_for(const Problem& p, Style style, bool last) {
  const ReduceLaunch& what = p.what;
  static constexpr DefineName kTypes[] = {define::A, define::B, define::C, define::D};
  static constexpr DefineName kKinds[] = {define::KIND_A, define::KIND_B, define::KIND_C,
                                          define::KIND_D};
  static constexpr DefineName kTexts[][4] = {
      {define::LIFT0, define::COMBINE0, define::IDENTITY0, define::FINISH0},
      {define::LIFT1, define::COMBINE1, define::IDENTITY1, define::FINISH1}};
  static constexpr const char* kResults[] = {"x", "y"};
  static constexpr DefineName kOuts[] = {define::OUT0, define::OUT1};
  Defines d;
  d.type(define::COMPUTE, what.compute).set(define::COMPONENTS, what.formula->components);
  d.set(define::FLOATING, is_floating(what.compute));
  if (what.truth) d.set(define::TRUTH, 1);
  for (size_t k = 0; k < 4; ++k) {
    const TensorView* in = what.inputs[k];
    const auto& nest = style == Style::Columns ? p.kept : p.reduced;
    d.type(kTypes[k], in == nullptr ? what.compute : in->dtype());
    d.set(kKinds[k],
          style == Style::Gpu ? (in == nullptr ? 3 : 1) : kind_of(in, nest.strides[k][0]));
  }
  for (size_t k = 0; k < 2; ++k) {
    d.type(kOuts[k], last && what.outs[k] != nullptr ? what.outs[k]->dtype() : what.compute);
    if (k >= static_cast<size_t>(what.formula->components)) continue;
    const Component& c = what.formula->part[k];
    const char* identity = c.identity != nullptr   ? c.identity
                           : c.combine == kMaximum ? lowest(what.compute)
                                                   : highest(what.compute);
    d.set(kTexts[k][0], c.lift).set(kTexts[k][1], c.combine).set(kTexts[k][2], identity);
    d.set(kTexts[k][3], last ? c.finish : kResults[k]);
  }
  return d;
}

void add_gpu_defines(Defines& d, const Problem& p, int64_t group) {
  d.set(define::GROUP, group)
      .set(define::INDEX, p.reduced.numel < (int64_t{1} << 31) ? "uint" : "ulong");
  if (p.columns) d.set(define::COLUMNS, 1);
  if (p.reduced.rank() == 1) d.set(define::FLAT, 1);
  if (p.reduced.rank() == 1 && p.what.inputs[1] == nullptr && p.reduced.strides[0][0] == 1)
    d.set(define::UNIT, 1);
}

MemoryRange memory_of(const TensorView* in, const Dims& shape) {
  return numel(shape) == 0 ? nullptr : MemoryRange(in);
}

// Reduces the partial results of `pieces` pieces: dimension 0 of [pieces, kept nest], whose
// outermost dimension comes first.
void second_pass(const OpCall& call, const Problem& p, int64_t pieces,
                 const std::vector<Scratch>& partial) {
  const ReduceLaunch& what = p.what;
  Reduction again = *what.formula;
  again.part[0].lift = "a";
  again.part[1].lift = "b";
  Dims shape{pieces};
  Dims out_strides[2];
  for (size_t i = p.kept.rank(); i-- > 0;) {
    shape.push_back(p.kept.sizes[i]);
    for (size_t k = 0; k < 2; ++k) out_strides[k].push_back(p.kept.strides[4 + k][i]);
  }
  const Dims kept(std::span<const int64_t>(shape).subspan(1));
  ReduceLaunch next{&again, what.compute, shape, 1, {}, {}, what.numbers};
  std::vector<LocalTensor> tensors;
  std::vector<TensorView> views;
  tensors.reserve(4);
  views.reserve(4);
  for (size_t k = 0; k < partial.size(); ++k) {
    tensors.emplace_back(partial[k].address(), what.compute, shape);
    views.push_back(tensors.back().view());
    next.inputs[k] = &views.back();
    tensors.emplace_back(what.outs[k]->address(), what.outs[k]->dtype(), kept, out_strides[k]);
    views.push_back(tensors.back().view());
    next.outs[k] = &views.back();
  }
  launch_reduce(call, next);
}

// Runs `kernel`, which writes results or, where sums are cut into pieces, partial ones, which a
// second pass joins.
template <typename Arguments>
void run_in_pieces(const OpCall& call, const Problem& problem, const Cut& cut, Style style,
                   const KernelOf<Arguments>& kernel) {
  const ReduceLaunch& what = problem.what;
  ReduceParams p{};
  fill_nests(p, problem);
  p.kept = cut.kept;
  p.count = cut.count;
  p.chunk = cut.chunk;
  p.inner_chunk = cut.inner_chunk;
  p.inner_pieces = cut.inner_pieces;
  p.kept_per_item = cut.kept_per_item;
  p.lanes = cut.lanes;
  for (size_t k = 0; k < 4; ++k) p.numbers[k] = scalar_bits(what.numbers[k], what.compute);
  std::vector<Scratch> partial;
  if (cut.pieces > 1) {
    p.piece_step = problem.kept.numel;
    for (size_t k = 4; k < 4 + static_cast<size_t>(what.formula->components); ++k) {
      int64_t step = 1;
      for (size_t i = 0; i < problem.kept.rank(); step *= problem.kept.sizes[i++])
        p.kept_strides[k][i] = step;
      partial.push_back(call.scratch(
          static_cast<uint64_t>(cut.pieces * problem.kept.numel * size_of(what.compute))));
    }
  }
  Defines d = defines_for(problem, style, partial.empty());
  const int64_t group = style == Style::Gpu ? group_size(call.caps()) : 1;
  if (style == Style::Gpu) add_gpu_defines(d, problem, group);
  const auto out = [&](size_t k) {
    if (partial.empty()) return MemoryRange(what.outs[k]);
    return k < partial.size() ? MemoryRange(partial[k]) : nullptr;
  };
  call.launch(kernel, d,
              {.a = memory_of(what.inputs[0], what.shape),
               .b = memory_of(what.inputs[1], what.shape),
               .c = memory_of(what.inputs[2], what.shape),
               .d = memory_of(what.inputs[3], what.shape),
               .out = {out(0), out(1)},
               .p = p})
      .run(cut.global, {group, 1, 1});
  if (!partial.empty()) second_pass(call, problem, cut.pieces, partial);
}

void run_rows(const OpCall& call, const Problem& p, const Cut& cut) {
  run_in_pieces(call, p, cut, Style::Rows, kernels::reduce::reduction_cpu::reduce);
}
void run_short_rows(const OpCall& call, const Problem& p, const Cut& cut) {
  run_in_pieces(call, p, cut, Style::Rows, kernels::reduce::reduction_short_rows::reduce);
}
void run_columns(const OpCall& call, const Problem& p, const Cut& cut) {
  run_in_pieces(call, p, cut, Style::Columns, kernels::reduce::reduction_columns::reduce);
}
void run_narrow_columns(const OpCall& call, const Problem& p, const Cut& cut) {
  run_in_pieces(call, p, cut, Style::Columns, kernels::reduce::reduction_narrow_columns::reduce);
}
void run_gpu(const OpCall& call, const Problem& p, const Cut& cut) {
  run_in_pieces(call, p, cut, Style::Gpu, kernels::reduce::reduction_gpu::reduce);
}

// ---- The choice

constinit const ReduceAlgorithm kNarrowColumns(
    {.id = "reduce.narrow_columns",
     .description = "64 columns a work-item, in registers",
     .style = DeviceStyle::Cpu},
    Steps<plan_narrow_columns, run_narrow_columns>());
constinit const ReduceAlgorithm kColumns({.id = "reduce.columns",
                                          .description = "along columns",
                                          .style = DeviceStyle::Cpu},
                                         Steps<plan_columns, run_columns>());
constinit const ReduceAlgorithm kShortRows({.id = "reduce.short_rows",
                                            .description = "eight rows at a time",
                                            .style = DeviceStyle::Cpu},
                                           Steps<plan_short_rows, run_short_rows>());
constinit const ReduceAlgorithm kRows({.id = "reduce.rows",
                                       .description = "along rows, in vectors",
                                       .style = DeviceStyle::Cpu,
                                       .last_resort = true},
                                      Steps<plan_rows, run_rows>());
constinit const ReduceAlgorithm kGpu({.id = "reduce.gpu",
                                      .description = "neighbouring work-items share a result",
                                      .style = DeviceStyle::Gpu,
                                      .last_resort = true},
                                     Steps<plan_gpu, run_gpu>());

struct ReduceTraits {
  static std::string describe(const OpCall& call, const Problem& p) {
    return fmt::format("{} {} {} of {} each{}", call.name(), name(p.what.compute), p.kept.numel,
                       p.reduced.numel, p.columns ? " in columns" : "");
  }
};
using Algorithms = AlgorithmList<Problem, ReduceTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "reduce", reduce_operators(), {&kNarrowColumns, &kColumns, &kShortRows, &kRows, &kGpu});
  return list;
}

// The values for the dimensions that are kept, then for those that are reduced.
Dims kept_first(std::span<const int64_t> values, DimMask reduced) {
  Dims ordered;
  for (const bool last : {false, true})
    for (size_t d = 0; d < values.size(); ++d)
      if (reduced[d] == last) ordered.push_back(values[d]);
  return ordered;
}

// For nests of more dimensions than the kernels take: over copies of the operands as matrices,
// whose rows are reduced.
void reduce_copies(const OpCall& call, const ReduceLaunch& what, int64_t rows, int64_t length) {
  ReduceLaunch next = what;
  next.shape = {rows, length};
  next.mask = DimMask().set(1);
  std::vector<Scratch> memory;
  std::vector<LocalTensor> tensors;
  std::vector<TensorView> views;
  memory.reserve(kOperands);
  tensors.reserve(kOperands);
  views.reserve(kOperands);
  const auto matrix = [&](DType type, const Dims& sizes) {
    memory.push_back(call.scratch(static_cast<uint64_t>(numel(sizes) * size_of(type))));
    tensors.emplace_back(memory.back().address(), type, sizes);
    return &views.emplace_back(tensors.back().view());
  };
  for (size_t k = 0; k < what.inputs.size(); ++k) {
    const TensorView* in = what.inputs[k];
    if (in == nullptr) continue;
    const Dims spread = broadcast_strides(in->sizes(), in->strides(), what.shape);
    next.inputs[k] = matrix(in->dtype(), {rows, length});
    copy_tensor(
        call,
        LocalTensor(next.inputs[k]->address(), in->dtype(), kept_first(what.shape, what.mask)),
        LocalTensor(in->address(), in->dtype(), kept_first(what.shape, what.mask),
                    kept_first(spread, what.mask)));
  }
  for (size_t k = 0; k < what.outs.size(); ++k)
    if (what.outs[k] != nullptr) next.outs[k] = matrix(what.outs[k]->dtype(), {rows});
  launch_reduce(call, next);
  for (size_t k = 0; k < what.outs.size(); ++k)
    if (const TensorView* out = what.outs[k])
      copy_tensor(call, *out,
                  LocalTensor(next.outs[k]->address(), out->dtype(), Dims(out->sizes())));
}

}  // namespace

int64_t group_size(const Capabilities& caps) {
  return static_cast<int64_t>(std::bit_floor(std::min<uint32_t>(256, caps.max_work_group_size)));
}

const char* lowest(DType type) {
  switch (type) {
    case DType::Bool:
    case DType::UInt8: return "0";
    case DType::Int8: return "SCHAR_MIN";
    case DType::Int16: return "SHRT_MIN";
    case DType::Int32: return "INT_MIN";
    case DType::Int64: return "LONG_MIN";
    default: return "-INFINITY";
  }
}
const char* highest(DType type) {
  switch (type) {
    case DType::Bool: return "1";
    case DType::UInt8: return "UCHAR_MAX";
    case DType::Int8: return "SCHAR_MAX";
    case DType::Int16: return "SHRT_MAX";
    case DType::Int32: return "INT_MAX";
    case DType::Int64: return "LONG_MAX";
    default: return "INFINITY";
  }
}

void launch_reduce(const OpCall& call, const ReduceLaunch& what) {
  const Problem problem = problem_of(what);
  if (problem.kept.numel == 0) return;
  if (problem.kept.rank() > REDUCE_RANK || problem.reduced.rank() > REDUCE_RANK)
    return reduce_copies(call, what, problem.kept.numel, problem.reduced.numel);
  algorithms().run(call, problem);
}

const AlgorithmFamily& reduction_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::reduce
