// multilabel_margin_loss_forward: one launch for the samples' losses, one that adds them up.
#include <algorithm>

#include "call/division.h"
#include "kernels/loss.h"
#include "loss.h"
#include "margin_params.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::loss {
namespace {

constexpr reduce::Reduction kSumLosses{1, {{"a", reduce::kAdd, "0", "x / s0"}}};

void reduce_losses(const OpCall& call, TensorView losses, bool mean) {
  const LocalTensor out(call.out(0).address(), call.out(0).dtype(), Dims{});
  const TensorView target = out.view();
  reduce::ReduceLaunch what{&kSumLosses, losses.dtype(), Dims{losses.numel()},
                            1,           {&losses},      {&target}};
  what.numbers[0] = mean ? static_cast<double>(losses.numel()) : 1.0;
  reduce::launch_reduce(call, what);
}

struct MarginLoss {
  TensorView self;
  int64_t mode;  // of the reduction
};

void run_samples(const OpCall& call, const MarginLoss& what) {
  const TensorView self = what.self;
  const int64_t mode = what.mode;
  const DType compute = compute_type(self.dtype());
  const int64_t samples = self.ndim() == 2 ? self.size(0) : 1;
  const bool direct = mode == 0 || samples == 1;
  const Scratch memory = call.scratch(static_cast<uint64_t>(samples * size_of(compute)));
  const LocalTensor losses(memory.address(), compute, Dims{samples});
  if (samples > 0) {
    const Contiguous x(call, self), target(call, call.args().tensor(Arg::target));
    ContiguousOutput out(call, call.out(0)), is_target(call, call.out(1));
    const TensorView written = direct ? out.view() : losses.view();
    MarginParams p{};
    p.pieces = samples;
    p.divisor = p.classes = self.ndim() == 0 ? 1 : self.size(-1);
    Division division = divide(call.caps(), samples);
    p.per_item = division.per_item;
    if (by_style(call, false, true)) {  // a work-group a sample
      division.local[0] = 1;
      while (division.local[0] * 2 <= std::min<int64_t>(64, call.caps().max_work_group_size))
        division.local[0] *= 2;
      division.global[0] = samples * division.local[0];
    }
    Defines d;
    d.type(define::A, self.dtype()).type(define::LOSS, written.dtype());
    d.set(define::GROUP_SIZE, division.local[0]);
    call.launch(kernels::loss::multilabel_margin::forward, d,
                {.loss = written,
                 .is_target = is_target.view(),
                 .self = x.view(),
                 .target = target.view(),
                 .faults = call.fault(FaultKind::Class, 1),
                 .p = p})
        .run(division.global, division.local);
    if (direct) out.finish();
    is_target.finish();
  }
  if (!direct) reduce_losses(call, losses, mode == 1);
}

constinit const AlgorithmFor<MarginLoss> kSamples(
    {.id = "multilabel_margin_loss.samples",
     .description = "the samples' losses, which a second launch adds up",
     .last_resort = true},
    Steps<takes_all<MarginLoss>, run_samples>());

struct Traits {
  static std::string describe(const OpCall& call, const MarginLoss& what) {
    return fmt::format("{} {} {}", call.name(), name(what.self.dtype()),
                       to_string(what.self.sizes()));
  }
};
using Algorithms = AlgorithmList<MarginLoss, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("multilabel_margin_loss", kMultilabelOperators, {&kSamples});  // leaked
  return list;
}

void forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const MarginLoss what{call.args().tensor(Arg::self), call.args().integer(Arg::reduction)};
  call.accept();
  algorithms().run(call, what);
}

constexpr OpEntry kOperators[] = {{"multilabel_margin_loss_forward.output", forward}};

}  // namespace

const std::span<const OpEntry> kMultilabelOperators = kOperators;

const AlgorithmFamily& multilabel_margin_loss_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::loss
