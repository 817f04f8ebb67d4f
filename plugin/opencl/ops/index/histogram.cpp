// _histogramdd_from_bin_tensors: the bin of each point, sums by bins, and the division that makes
// densities of them.
#include <algorithm>
#include <deque>

#include "call/division.h"
#include "histogram_params.h"
#include "index.h"
#include "kernels/index.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::index {
namespace {

constexpr size_t kAtOnce = 4;  // dimensions that a launch handles
constexpr reduce::Reduction kTotal{1, {{"a", reduce::kAdd, "0", "x"}}};

// A kernel of histogram.cl handles four dimensions: it is launched once for every four.
template <typename Arguments>
void launch_dimensions(const OpCall& call, const KernelOf<Arguments>& kernel, TensorView out,
                       TensorView in, const std::deque<Contiguous>& edges, int64_t pieces) {
  for (size_t first = 0; first < edges.size(); first += kAtOnce) {
    HistogramParams p{};
    p.pieces = pieces;
    p.dims = static_cast<int64_t>(edges.size());
    p.first = static_cast<int64_t>(first);
    p.inner = 1;
    const Division division = divide(call.caps(), pieces);
    p.per_item = division.per_item;
    Defines d;
    d.type(define::A, edges[0].view().dtype());
    const auto edge = [&](size_t k) { return edges[std::min(k, edges.size() - 1)].view(); };
    for (size_t k = first; k < std::min(first + kAtOnce, edges.size()); ++k)
      p.bins[k - first] = edge(k).numel() - 1;
    for (size_t k = first + kAtOnce; k < edges.size(); ++k) p.inner *= edges[k].view().numel() - 1;
    call.launch(kernel, d,
                {.out = out,
                 .in = in,
                 .edge = {edge(first), edge(first + 1), edge(first + 2), edge(first + 3)},
                 .p = p})
        .run(division.global, division.local);
  }
}

void divide_by_volumes(const OpCall& call, TensorView sums, const std::deque<Contiguous>& edges) {
  const Scratch memory = call.scratch(static_cast<uint64_t>(size_of(sums.dtype())));
  const LocalTensor total(memory.address(), sums.dtype(), Dims{}),
      flat(sums.address(), sums.dtype(), Dims{sums.numel()});
  const TensorView in = flat.view(), out = total.view();
  reduce::launch_reduce(call, {&kTotal, sums.dtype(), Dims{sums.numel()}, 1, {&in}, {&out}});
  launch_dimensions(call, kernels::index::histogram::density, sums, out, edges, sums.numel());
}

struct Histogram {
  TensorView sums, points;  // row-major; [.., dimensions]
  const std::optional<TensorView>& weight;
  const std::deque<Contiguous>& edges;
  bool density;
};

// Adds up points by their bins: the bin of a point is its key.
void run_keys(const OpCall& call, const Histogram& what) {
  const int64_t points = what.points.numel() / what.points.size(-1);
  copy::fill_tensor(call, what.sums, 0);
  if (points > 0) {
    const Contiguous dense(call, what.points), amounts(call, what.weight.value_or(what.points));
    const Scratch memory = call.scratch(static_cast<uint64_t>(points) * 8);
    const LocalTensor keys(memory.address(), DType::Int64, Dims{points});
    launch_dimensions(call, kernels::index::histogram::places, keys, dense.view(), what.edges,
                      points);
    const Scratch number = call.scratch(what.weight ? 0 : 8);
    const LocalTensor one(number.address(), what.points.dtype(), Dims{});
    if (!what.weight) copy::fill_tensor(call, one, 1);
    Accumulation sum{what.sums, what.weight ? amounts.view() : one.view(), keys};
    sum.length = points;
    sum.one_source = !what.weight;
    accumulate(call, sum);
  }
  if (what.density) divide_by_volumes(call, what.sums, what.edges);
}

constinit const AlgorithmFor<Histogram> kKeys({.id = "histogram.keys",
                                               .description = "points are added up by their bins",
                                               .last_resort = true},
                                              Steps<takes_all<Histogram>, run_keys>());

struct Traits {
  static std::string describe(const OpCall& call, const Histogram& what) {
    return fmt::format("{} {} {}", call.name(), name(what.points.dtype()),
                       to_string(what.points.sizes()));
  }
};
using Algorithms = AlgorithmList<Histogram, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("histogram", kHistogramOperators, {&kKeys});  // leaked
  return list;
}

void histogramdd(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  const auto weight = call.args().optional_tensor(Arg::weight);
  if (self.dtype() != DType::Float32 && self.dtype() != DType::Float64)
    unsupported(TB_REASON_DTYPE, "{}: {} is not supported", call.name(), name(self.dtype()));
  call.accept();
  std::deque<Contiguous> edges;
  for (const TensorView edge : call.args().whole_list(Arg::bins)) edges.emplace_back(call, edge);
  ContiguousOutput sums(call, call.out(0));
  algorithms().run(call, {sums.view(), self, weight, edges, call.args().boolean(Arg::density)});
  sums.finish();
}

constexpr OpEntry kOperators[] = {{"_histogramdd_from_bin_tensors.out", histogramdd}};

}  // namespace

const std::span<const OpEntry> kHistogramOperators = kOperators;

const AlgorithmFamily& histogram_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::index
