// Extreme values with their positions: argmax, argmin, max.dim, min.dim.
#include <algorithm>
#include <deque>

#include "base/infer/common.h"
#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "kernels/reduce.h"
#include "ops/copy/copy.h"
#include "reduction.h"

namespace ocltensor::opencl::reduce {
namespace {

// A contiguous input as [outer, length, inner].
struct Block {
  int64_t outer = 1, length = 1, inner = 1;
};
Block block_of(TensorView self, std::optional<int64_t> dim) {
  if (!dim) return {1, self.numel(), 1};
  Block b;
  const int64_t at = wrap_dim(*dim, self.ndim());
  for (int64_t d = 0; d < self.ndim(); ++d)
    (d < at ? b.outer : d == at ? b.length : b.inner) *= self.size(d);
  return b;
}

// The type in which elements are compared. All narrow types are exact in float32; positions are as
// wide as the values, so that vectors of both have equal lengths.
DType arithmetic(DType type) {
  return type == DType::Int64 || type == DType::Float64 || type == DType::Int32 ? type
                                                                                : DType::Float32;
}

struct ArgProblem {
  TensorView self;  // contiguous
  Block block;
  bool largest;
  const TensorView *values, *indices;  // null: not wanted
};
using ArgAlgorithm = AlgorithmFor<ArgProblem>;

struct Cut {
  Grid global, local;
  int64_t chunk, pieces;
  int64_t share;  // CPU drivers: outputs of a work-item; GPUs: work-items of an output
};

// Each work-item of a CPU driver has a run of outputs (or a block of neighbouring ones) and a part
// of their elements.
Planned<Cut> plan_cpu(const OpCall&, const ArgProblem& p) {
  const Block& b = p.block;
  Cut d{};
  const int64_t outputs = b.outer * b.inner;
  d.share = b.inner == 1 ? std::max(divide_up(outputs, 64),
                                    std::min(outputs, 8192 / std::max<int64_t>(1, b.length)))
                         : std::min<int64_t>(1024, b.inner);
  d.share = std::max<int64_t>(1, d.share);
  const int64_t items =
      b.inner == 1 ? divide_up(outputs, d.share) : b.outer * divide_up(b.inner, d.share);
  const int64_t wanted = items > 32 ? 1 : std::min(64 / items, divide_up(b.length * d.share, 8192));
  d.chunk = divide_up(divide_up(b.length, wanted), 64) * 64;
  d.pieces = divide_up(b.length, d.chunk);
  d.global = {items, d.pieces, 1};
  d.local = {1, 1, 1};
  return d;
}

Planned<Cut> plan_gpu(const OpCall& call, const ArgProblem& p) {
  const Capabilities& caps = call.caps();
  const Block& b = p.block;
  Cut d{};
  const int64_t group = group_size(caps);
  const int64_t outputs = b.outer * b.inner;
  const int64_t busy = static_cast<int64_t>(caps.compute_units) * 8;
  d.share = 1;
  const int64_t widest = b.inner == 1 ? group : std::max<int64_t>(1, group / 32);
  while (d.share < widest && d.share * 8 < b.length) d.share *= 2;
  const int64_t groups = divide_up(outputs, group / d.share);
  const int64_t wanted =
      groups >= busy / 2 ? 1 : std::min(busy / groups, b.length / (d.share * 16));
  d.chunk = std::max<int64_t>(1, divide_up(b.length, std::max<int64_t>(1, wanted)));
  d.pieces = divide_up(b.length, d.chunk);
  d.global = {groups * group, d.pieces, 1};
  d.local = {group, 1, 1};
  return d;
}

// `style`: defines that the style's kernel needs besides.
template <typename Arguments>
void run(const OpCall& call, const ArgProblem& p, const Cut& cut, const KernelOf<Arguments>& kernel,
         const Defines& style) {
  const auto& [self, b, largest, values, indices] = p;
  const DType compute = arithmetic(self.dtype());
  const bool narrow = size_of(compute) == 4;
  if (narrow && cut.chunk >= (int64_t{1} << 31))
    unsupported(TB_REASON_SIZE, "{}: {} elements in one piece", call.name(), cut.chunk);
  const int64_t outputs = b.outer * b.inner;
  const auto writing = [&](Defines d, DType value, bool writes_values, bool writes_indices) {
    d.type(define::COMPUTE, compute)
        .type(define::POSITION, narrow ? DType::Int32 : DType::Int64)
        .type(define::A, self.dtype());
    d.set(define::COMPARE, largest ? ">" : "<").type(define::VALUE, value);
    return d.set(define::VALUES, writes_values).set(define::INDICES, writes_indices);
  };
  const auto last = [&](const Defines& d) {
    return writing(d, values != nullptr ? values->dtype() : compute, values != nullptr,
                   indices != nullptr);
  };
  std::vector<Scratch> partial;
  if (cut.pieces > 1) {
    partial.push_back(call.scratch(static_cast<uint64_t>(outputs * cut.pieces * size_of(compute))));
    partial.push_back(call.scratch(static_cast<uint64_t>(outputs * cut.pieces * 8)));
  }
  const bool whole = partial.empty();
  call.launch(kernel, whole ? last(style) : writing(style, compute, true, true),
              {.a = self,
               .value = whole ? MemoryRange(values) : partial[0],
               .index = whole ? MemoryRange(indices) : partial[1],
               .outer = b.outer,
               .length = b.length,
               .inner = b.inner,
               .chunk = cut.chunk,
               .share = cut.share})
      .run(cut.global, cut.local);
  if (whole) return;
  const auto local = by_style<int64_t>(call, 1, 64);
  call.launch(kernels::reduce::arg_merge::merge, last({}),
              {.partial = partial[0],
               .at = partial[1],
               .value = values,
               .index = indices,
               .outputs = outputs,
               .pieces = cut.pieces})
      .run({(outputs + local - 1) / local * local, 1, 1}, {local, 1, 1});
}

void run_cpu(const OpCall& call, const ArgProblem& p, const Cut& cut) {
  run(call, p, cut, kernels::reduce::arg_cpu::arg, {});
}
void run_gpu(const OpCall& call, const ArgProblem& p, const Cut& cut) {
  Defines d;
  d.set(define::GROUP, group_size(call.caps()));
  if (p.block.inner == 1) d.set(define::UNIT, 1);
  run(call, p, cut, kernels::reduce::arg_gpu::arg, d);
}

constinit const ArgAlgorithm kCpu({.id = "arg.cpu",
                                   .description = "in vectors along rows or across columns",
                                   .style = DeviceStyle::Cpu,
                                   .last_resort = true},
                                  Steps<plan_cpu, run_cpu>());
constinit const ArgAlgorithm kGpu({.id = "arg.gpu",
                                   .description = "neighbouring work-items share a result",
                                   .style = DeviceStyle::Gpu,
                                   .last_resort = true},
                                  Steps<plan_gpu, run_gpu>());

struct ArgTraits {
  static std::string describe(const OpCall& call, const ArgProblem& p) {
    return fmt::format("{} {} {}x{}x{}", call.name(), name(p.self.dtype()), p.block.outer,
                       p.block.length, p.block.inner);
  }
};
using Algorithms = AlgorithmList<ArgProblem, ArgTraits>;

Algorithms& algorithms() {
  static Algorithms& list =  // leaked: threads may run while the process ends
      *new Algorithms("arg", kArgOperators, {&kCpu, &kGpu});
  return list;
}

// Output `value_at` takes values, `index_at` positions (-1: not wanted).
void extreme(OpCall& call, bool largest, int value_at, int index_at) {
  const auto specs = check_outputs(call, OutputTypes::Castable);
  const TensorView self = call.args().tensor(Arg::self);
  const auto dim = call.args().optional_integer(Arg::dim);
  if (index_at >= 0)
    check(call.out(static_cast<size_t>(index_at)).dtype() == DType::Int64,
          "{}: positions are int64", call.name());
  call.accept();
  const Block b = block_of(self, dim);
  if (b.outer * b.inner == 0) return;
  const Contiguous in(call, self);
  std::deque<ContiguousOutput> outs;
  std::vector<TensorView> views;
  views.reserve(2);
  const TensorView* targets[2] = {};
  for (int k = 0; k < 2; ++k) {
    const int at = k == 0 ? value_at : index_at;
    if (at < 0) continue;
    outs.emplace_back(call, call.out(static_cast<size_t>(at)));
    views.push_back(outs.back().view());
    targets[k] = &views.back();
  }
  algorithms().run(call, {in.view(), b, largest, targets[0], targets[1]});
  for (ContiguousOutput& out : outs) out.finish();
}

constexpr OpEntry kOperators[] = {
    {"argmax.out", [](OpCall& call) { extreme(call, true, -1, 0); }},
    {"argmin.out", [](OpCall& call) { extreme(call, false, -1, 0); }},
    {"max.dim_max", [](OpCall& call) { extreme(call, true, 0, 1); }},
    {"min.dim_min", [](OpCall& call) { extreme(call, false, 0, 1); }}};

}  // namespace

const std::span<const OpEntry> kArgOperators = kOperators;

const AlgorithmFamily& arg_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::reduce
