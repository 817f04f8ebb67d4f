// softmax and log-softmax with their backward operators: rows of a contiguous [outer, n, inner].
#include "softmax.h"

#include <algorithm>
#include <bit>

#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "call/nest.h"
#include "kernels/softmax.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::softmax {
namespace {

// All tensors are contiguous and not empty.
struct SoftmaxProblem {
  Nest nest;
  bool log, backward;
  TensorView first, second;  // the input, twice; or the gradient and forward's result
  TensorView out;
  DType compute;
};
using SoftmaxAlgorithm = AlgorithmFor<SoftmaxProblem>;

Defines defines_for(const SoftmaxProblem& p) {
  Defines d;
  d.type(define::COMPUTE, p.compute).set(define::LOG, p.log);
  d.type(define::A, p.first.dtype()).type(define::OUT, p.out.dtype());
  if (p.backward) d.type(define::B, p.second.dtype());
  return d;
}

// ---- CPU drivers

void run_cpu(const OpCall& call, const SoftmaxProblem& p) {
  const Nest& s = p.nest;
  Defines d = defines_for(p);
  if (p.compute == DType::Float32) d.set(define::FAST_EXP, 1);
  if (!p.backward && p.out.dtype() == p.compute) d.set(define::KEEP, 1);
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 2048;  // elements that are worth a work-item
  const int64_t units = s.inner == 1 ? s.outer : s.outer * divide_up(s.inner, 64);
  const int64_t per = std::max(
      {divide_up(units, kPieces), kSmallest / (s.n * std::min<int64_t>(s.inner, 64)), int64_t{1}});
  const Grid items{divide_up(units, per), 1, 1};
  if (p.backward)
    call.launch(kernels::softmax::softmax_backward_cpu::softmax, d,
                {.a = p.first, .b = p.second, .out = p.out, .s = s, .per = per})
        .run(items, {1, 1, 1});
  else
    call.launch(kernels::softmax::softmax_cpu::softmax, d,
                {.a = p.first, .out = p.out, .s = s, .per = per})
        .run(items, {1, 1, 1});
}

// ---- GPUs

constexpr int64_t kHeld = 16;  // softmax_gpu.cl, long_rows.h: HELD

// A row is shared by `pieces` work-groups, which take `chunk` elements each.
struct LongRows {
  int64_t group, pieces, chunk;
};
Planned<LongRows> plan_long_rows(const OpCall& call, const SoftmaxProblem& p) {
  const int64_t group = reduce::group_size(call.caps());
  if (p.nest.inner != 1) return "rows are not contiguous";
  if (p.nest.n <= group * kHeld) return "rows fit a work-group's registers";
  const int64_t pieces = divide_up(p.nest.n, group * kHeld);
  return LongRows{group, pieces, divide_up(p.nest.n, pieces)};
}

// Two launches: the first one computes the numbers of each chunk, the second one the results.
void run_long_rows(const OpCall& call, const SoftmaxProblem& p, const LongRows& plan) {
  const int64_t numbers = p.backward ? 1 : 2;  // of a chunk
  const int64_t chunks = p.nest.outer * plan.pieces;
  Defines d = defines_for(p);
  d.set(define::GROUP, plan.group);
  const Scratch partials =
      call.scratch(static_cast<uint64_t>(chunks * numbers * size_of(p.compute)));
  const Grid items{chunks * plan.group, 1, 1};
  const Grid group{plan.group, 1, 1};
  const int64_t n = p.nest.n;
  if (p.backward) {
    namespace kernel = kernels::softmax::softmax_long_rows_backward;
    call.launch(kernel::softmax_partial, d,
                {.a = p.first,
                 .b = p.second,
                 .partial = partials,
                 .n = n,
                 .pieces = plan.pieces,
                 .chunk = plan.chunk})
        .run(items, group);
    call.launch(kernel::softmax_apply, d,
                {.a = p.first,
                 .b = p.second,
                 .partial = partials,
                 .out = p.out,
                 .n = n,
                 .pieces = plan.pieces,
                 .chunk = plan.chunk})
        .run(items, group);
  } else {
    namespace kernel = kernels::softmax::softmax_long_rows;
    call.launch(
            kernel::softmax_partial, d,
            {.a = p.first, .partial = partials, .n = n, .pieces = plan.pieces, .chunk = plan.chunk})
        .run(items, group);
    call.launch(kernel::softmax_apply, d,
                {.a = p.first,
                 .partial = partials,
                 .out = p.out,
                 .n = n,
                 .pieces = plan.pieces,
                 .chunk = plan.chunk})
        .run(items, group);
  }
}

// A row is held by one work-group, in `held` vectors of 16 bytes for each item.
struct WholeRows {
  int64_t group, vector, held;
};
Planned<WholeRows> plan_whole_rows(const OpCall& call, const SoftmaxProblem& p) {
  constexpr uint32_t kWidest = 1024;
  constexpr int64_t kMostHeld = 8;  // 32 registers, of the 64 that so many items have on most GPUs
  constexpr int64_t kBytes = 16;
  const Capabilities& caps = call.caps();
  if (!caps.register_tiles()) return "the device keeps no tiles in registers";
  if (p.nest.inner != 1) return "rows are not contiguous";
  if (p.nest.n <= reduce::group_size(caps) * kHeld) return "rows fit fewer work-items' registers";
  if (p.nest.outer < static_cast<int64_t>(caps.compute_units)) return "too few rows";
  const DType type = p.out.dtype();
  if (p.compute != DType::Float32 || p.first.dtype() != type || p.second.dtype() != type)
    return "types other than one of float32, float16 and bfloat16";
  if ((p.first.address() | p.second.address() | p.out.address()) % kBytes != 0)
    return "memory does not start at a multiple of 16 bytes";
  const auto group =
      static_cast<int64_t>(std::bit_floor(std::min(kWidest, caps.max_work_group_size)));
  const int64_t vector = kBytes / size_of(type);
  // A row may start at a vector's last element.
  const int64_t held = divide_up(p.nest.n + vector - 1, group * vector);
  if (held > kMostHeld) return "rows do not fit a work-group's registers";
  return WholeRows{group, vector, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(held)))};
}

void run_whole_rows(const OpCall& call, const SoftmaxProblem& p, const WholeRows& plan) {
  Defines d;
  d.type(define::COMPUTE, p.compute).type(define::A, p.out.dtype()).set(define::LOG, p.log);
  d.set(define::GROUP, plan.group).set(define::VEC, plan.vector).set(define::HELD, plan.held);
  const Grid items{p.nest.outer * plan.group, 1, 1};
  const Grid group{plan.group, 1, 1};
  if (p.backward)
    call.launch(kernels::softmax::softmax_whole_rows_backward::softmax, d,
                {.a = p.first, .b = p.second, .out = p.out, .n = p.nest.n})
        .run(items, group);
  else
    call.launch(kernels::softmax::softmax_whole_rows::softmax, d,
                {.a = p.first, .out = p.out, .n = p.nest.n})
        .run(items, group);
}

// How many work-items share a row: each takes 16 elements if that leaves enough work-groups, else
// 8.
int64_t lanes_for(const OpCall& call, const Nest& s, int64_t group) {
  const int64_t widest = s.inner == 1 ? group : std::max<int64_t>(1, group / 32);
  const int64_t busy = static_cast<int64_t>(call.caps().compute_units) * 4 * group;
  int64_t lanes = 1;
  while (lanes < widest &&
         (lanes * kHeld < s.n || (lanes * 8 < s.n && s.outer * s.inner * lanes < busy)))
    lanes *= 2;
  return lanes;
}

void run_gpu(const OpCall& call, const SoftmaxProblem& p) {
  const Nest& s = p.nest;
  const int64_t group = reduce::group_size(call.caps());
  const int64_t lanes = lanes_for(call, s, group);
  Defines d = defines_for(p);
  d.set(define::GROUP, group);
  if (s.inner == 1) d.set(define::UNIT, 1);
  const int64_t groups = divide_up(s.outer * s.inner, group / lanes);
  const Grid items{groups * group, 1, 1};
  const Grid local{group, 1, 1};
  if (p.backward) {
    call.launch(kernels::softmax::softmax_backward_gpu::softmax, d,
                {.a = p.first, .b = p.second, .out = p.out, .s = s, .lanes = lanes})
        .run(items, local);
  } else {
    namespace kernel = kernels::softmax::softmax_gpu;
    call.launch(s.n <= lanes * kHeld ? kernel::softmax_held : kernel::softmax, d,
                {.a = p.first, .out = p.out, .s = s, .lanes = lanes})
        .run(items, local);
  }
}

// ---- The choice

constinit const SoftmaxAlgorithm kWholeRows({.id = "softmax.whole_rows",
                                             .description = "a work-group holds a row in registers",
                                             .style = DeviceStyle::Gpu},
                                            Steps<plan_whole_rows, run_whole_rows>());
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
    return fmt::format("{} {} {}x{}x{}", call.name(), name(p.first.dtype()), p.nest.outer, p.nest.n,
                       p.nest.inner);
  }
};
using Algorithms = AlgorithmList<SoftmaxProblem, SoftmaxTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "softmax", softmax_operators(), {&kWholeRows, &kLongRows, &kGpu, &kCpu});
  return list;
}

template <bool log>
void forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView self = call.args().tensor(Arg::self);
  const Nest s = nest_of(self, call.args().integer(Arg::dim));
  call.accept();
  if (self.numel() == 0) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  algorithms().run(call,
                   {s, log, false, in.view(), in.view(), out.view(), compute_type(self.dtype())});
  out.finish();
}

template <bool log>
void backward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView grad = call.args().tensor(Arg::grad_output);
  const TensorView result = call.args().tensor(Arg::output);
  const Nest s = nest_of(grad, call.args().integer(Arg::dim));
  call.accept();
  if (grad.numel() == 0) return;
  const Contiguous a(call, grad);
  const Contiguous b(call, result);
  ContiguousOutput out(call, call.out(0));
  algorithms().run(call,
                   {s, log, true, a.view(), b.view(), out.view(), compute_type(grad.dtype())});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_softmax.out", forward<false>},
                                  {"_log_softmax.out", forward<true>},
                                  {"_softmax_backward_data.out", backward<false>},
                                  {"_log_softmax_backward_data.out", backward<true>}};

}  // namespace

const AlgorithmFamily& softmax_algorithms() { return algorithms().family(); }

std::span<const OpEntry> softmax_operators() { return kOperators; }

}  // namespace ocltensor::opencl::softmax
