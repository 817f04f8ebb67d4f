// softmax and log-softmax with their backward operators: rows of a contiguous [outer, n, inner].
#include "softmax.h"

#include <algorithm>

#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "kernel_sources.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl {
namespace {

struct Shape {
  int64_t outer = 1, n = 1, inner = 1;
};
Shape shape_of(TensorView self, int64_t dim) {
  Shape s;
  const int64_t at = wrap_dim(dim, self.ndim());
  for (int64_t d = 0; d < self.ndim(); ++d)
    (d < at ? s.outer : d == at ? s.n : s.inner) *= self.size(d);
  return s;
}

// Everything contiguous and not empty.
struct SoftmaxProblem {
  Shape shape;
  bool backward;
  TensorView first, second;  // the input, twice; or the gradient and forward's result
  TensorView out;
  DType compute;
};
using SoftmaxAlgorithm = AlgorithmFor<SoftmaxProblem>;

Defines defines_for(const OpCall& call, const SoftmaxProblem& p) {
  Defines d;
  const bool log = call.name().find("log_") != std::string::npos;
  d.type("COMPUTE", p.compute).set("LOG", log);
  d.type("A", p.first.dtype()).type("OUT", p.out.dtype());
  if (p.backward) d.type("B", p.second.dtype());
  return d;
}

void bind_inputs(Launch& launch, const SoftmaxProblem& p) {
  bind(launch, p.first);
  if (p.backward) bind(launch, p.second);
}

// ---- CPU drivers

void run_cpu(const OpCall& call, const SoftmaxProblem& p) {
  const Shape& s = p.shape;
  Defines d = defines_for(call, p);
  if (p.compute == DType::Float32) d.set("FAST_EXP", 1);
  if (!p.backward && p.out.dtype() == p.compute) d.set("KEEP", 1);
  Launch launch = call.launch(p.backward ? kernel_sources::softmax_softmax_backward_cpu
                                         : kernel_sources::softmax_softmax_cpu,
                              "softmax", d);
  bind_inputs(launch, p);
  bind(launch, p.out);
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 2048;  // elements that are worth a work-item
  const int64_t units = s.inner == 1 ? s.outer : s.outer * divide_up(s.inner, 64);
  const int64_t per = std::max(
      {divide_up(units, kPieces), kSmallest / (s.n * std::min<int64_t>(s.inner, 64)), int64_t{1}});
  launch.value(s.outer).value(s.n).value(s.inner).value(per);
  launch.run({static_cast<size_t>(divide_up(units, per)), 1, 1}, {1, 1, 1});
}

// ---- GPUs

constexpr int64_t kHeld = 16;  // softmax_gpu.cl, long_rows.h: HELD

// Several groups a row: `splits` of them, with `chunk` elements each.
struct LongRows {
  int64_t group, splits, chunk;
};
Planned<LongRows> plan_long_rows(const OpCall& call, const SoftmaxProblem& p) {
  const int64_t group = group_size(call.caps());
  if (p.shape.inner != 1) return "rows are not contiguous";
  if (p.shape.n <= group * kHeld) return "rows fit a work-group's registers";
  const int64_t splits = divide_up(p.shape.n, group * kHeld);
  return LongRows{group, splits, divide_up(p.shape.n, splits)};
}

// Two launches: numbers of each chunk, then the results.
void run_long_rows(const OpCall& call, const SoftmaxProblem& p, const LongRows& plan) {
  const int64_t numbers = p.backward ? 1 : 2;  // of a chunk
  const int64_t chunks = p.shape.outer * plan.splits;
  Defines d = defines_for(call, p);
  d.set("GROUP", plan.group);
  const Scratch parts = call.scratch(static_cast<uint64_t>(chunks * numbers * size_of(p.compute)));
  for (const bool last : {false, true}) {
    Launch launch = call.launch(p.backward ? kernel_sources::softmax_softmax_long_rows_backward
                                           : kernel_sources::softmax_softmax_long_rows,
                                last ? "softmax_apply" : "softmax_part", d);
    bind_inputs(launch, p);
    launch.memory(parts.address(), 0, static_cast<int64_t>(parts.bytes()));
    if (last) bind(launch, p.out);
    launch.value(p.shape.n).value(plan.splits).value(plan.chunk);
    launch.run({static_cast<size_t>(chunks * plan.group), 1, 1},
               {static_cast<size_t>(plan.group), 1, 1});
  }
}

// An item takes 16 elements where that leaves enough groups, else 8.
int64_t lanes_for(const OpCall& call, const Shape& s, int64_t group) {
  const int64_t widest = s.inner == 1 ? group : std::max<int64_t>(1, group / 32);
  const int64_t busy = static_cast<int64_t>(call.caps().compute_units) * 4 * group;
  int64_t lanes = 1;
  while (lanes < widest &&
         (lanes * kHeld < s.n || (lanes * 8 < s.n && s.outer * s.inner * lanes < busy)))
    lanes *= 2;
  return lanes;
}

void run_gpu(const OpCall& call, const SoftmaxProblem& p) {
  const Shape& s = p.shape;
  const int64_t group = group_size(call.caps());
  const int64_t lanes = lanes_for(call, s, group);
  Defines d = defines_for(call, p);
  d.set("GROUP", group);
  if (s.inner == 1) d.set("UNIT", 1);
  const bool held = !p.backward && s.n <= lanes * kHeld;
  Launch launch = call.launch(p.backward ? kernel_sources::softmax_softmax_backward_gpu
                                         : kernel_sources::softmax_softmax_gpu,
                              held ? "softmax_held" : "softmax", d);
  bind_inputs(launch, p);
  bind(launch, p.out);
  const int64_t groups = divide_up(s.outer * s.inner, group / lanes);
  launch.value(s.outer).value(s.n).value(s.inner).value(lanes);
  launch.run({static_cast<size_t>(groups * group), 1, 1}, {static_cast<size_t>(group), 1, 1});
}

// ---- The choice

constinit const SoftmaxAlgorithm kLongRows({.id = "softmax.long_rows",
                                            .description = "several work-groups share a row",
                                            .style = DeviceStyle::Gpu},
                                           Steps<plan_long_rows, run_long_rows>());
constinit const SoftmaxAlgorithm kGpu({.id = "softmax.gpu",
                                       .description = "neighbouring work-items share a row",
                                       .style = DeviceStyle::Gpu,
                                       .last_resort = true},
                                      Steps<takes_all<SoftmaxProblem>, run_gpu>());
constinit const SoftmaxAlgorithm kCpu({.id = "softmax.cpu",
                                       .description = "a work-item takes whole rows",
                                       .style = DeviceStyle::Cpu,
                                       .last_resort = true},
                                      Steps<takes_all<SoftmaxProblem>, run_cpu>());

struct SoftmaxTraits {
  static std::string describe(const OpCall& call, const SoftmaxProblem& p) {
    return fmt::format("{} {} {}x{}x{}", call.name(), name(p.first.dtype()), p.shape.outer,
                       p.shape.n, p.shape.inner);
  }
};
using Algorithms = AlgorithmList<SoftmaxProblem, SoftmaxTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "softmax", softmax_operators(), {&kLongRows, &kGpu, &kCpu});
  return list;
}

void forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView self = call.args().tensor(Arg::self);
  const Shape s = shape_of(self, call.args().integer(Arg::dim));
  call.accept();
  if (self.numel() == 0) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  algorithms().run(call, {s, false, in.view(), in.view(), out.view(), compute_type(self.dtype())});
  out.finish();
}

void backward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView grad = call.args().tensor(Arg::grad_output);
  const TensorView result = call.args().tensor(Arg::output);
  const Shape s = shape_of(grad, call.args().integer(Arg::dim));
  call.accept();
  if (grad.numel() == 0) return;
  const Contiguous a(call, grad);
  const Contiguous b(call, result);
  ContiguousOutput out(call, call.out(0));
  algorithms().run(call, {s, true, a.view(), b.view(), out.view(), compute_type(grad.dtype())});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_softmax.out", forward},
                                  {"_log_softmax.out", forward},
                                  {"_softmax_backward_data.out", backward},
                                  {"_log_softmax_backward_data.out", backward}};

}  // namespace

const AlgorithmFamily& softmax_algorithms() { return algorithms().family(); }

std::span<const OpEntry> softmax_operators() { return kOperators; }

}  // namespace ocltensor::opencl
