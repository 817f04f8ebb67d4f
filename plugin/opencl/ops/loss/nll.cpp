// nll_loss and nll_loss2d with their backward operators. Classes are dimension 1 (dimension 0 of a
// single sample). A target that is not a class is reported (runtime/queue/faults.h); its loss and
// its gradients are NaN.
#include <algorithm>

#include "call/division.h"
#include "kernels/loss.h"
#include "loss.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::loss {
namespace {

struct Shape {
  int64_t targets, classes, inner;
};
Shape shape_of(TensorView self) {
  const bool single = self.ndim() == 1;
  Shape s{single ? 1 : self.size(0), self.size(single ? 0 : 1), 1};
  for (int64_t d = 2; d < self.ndim(); ++d) s.inner *= self.size(d);
  s.targets *= s.inner;
  return s;
}

// The weights of the classes, if there are any.
struct Weights {
  const TensorView* memory;
  int64_t stride;
};
Weights weights_of(const std::optional<TensorView>& weight) {
  if (!weight) return {nullptr, 0};
  return {&*weight, weight->strides()[0]};
}

Division divide_targets(const OpCall& call, int64_t targets) {
  const int64_t per = by_style<int64_t>(call, std::max<int64_t>(256, (targets + 63) / 64), 1);
  const int64_t local = by_style<int64_t>(call, 1, 64);
  const int64_t items = (targets + per - 1) / per;
  return {{(items + local - 1) / local * local, 1, 1}, {local, 1, 1}, per};
}

constexpr reduce::Reduction kMeanLoss{
    2, {{"a", reduce::kAdd, "0", "x / y"}, {"b", reduce::kAdd, "0", "y"}}};
constexpr reduce::Reduction kSumLoss{
    2, {{"a", reduce::kAdd, "0", "x"}, {"b", reduce::kAdd, "0", "y"}}};

Defines defines_for(TensorView target, const std::optional<TensorView>& weight, DType compute) {
  Defines d;
  d.type(define::COMPUTE, compute)
      .type(define::TARGET, target.dtype())
      .set(define::HAS_WEIGHT, weight.has_value());
  d.type(define::W, weight ? weight->dtype() : compute);
  return d;
}

void run_forward(const OpCall& call) {
  const TensorView self = call.args().tensor(Arg::self), target = call.args().tensor(Arg::target);
  const auto weight = call.args().optional_tensor(Arg::weight);
  const int64_t mode = call.args().integer(Arg::reduction),
                ignored = call.args().integer(Arg::ignore_index);
  const DType compute = compute_type(self.dtype());
  const Shape s = shape_of(self);
  const bool each = mode == 0 && self.ndim() > 1;  // one loss per target, no total weight
  if (each) copy::fill_tensor(call, call.out(1), 0);
  if (each && s.targets == 0) return;
  const Contiguous x(call, self), t(call, target);
  Defines d = defines_for(target, weight, compute);
  d.type(define::X, self.dtype())
      .type(define::G, compute)
      .type(define::TOTAL, compute)
      .type(define::OUT, each ? call.out(0).dtype() : compute);
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(1, s.targets) * size_of(compute));
  const Scratch losses = call.scratch(each ? 1 : bytes), used = call.scratch(each ? 1 : bytes);
  ContiguousOutput out(call, call.out(0));
  if (s.targets > 0) {
    const Weights weights = weights_of(weight);
    const Division division = divide_targets(call, s.targets);
    call.launch(kernels::loss::nll::gather, d,
                {.x = x.view(),
                 .target = t.view(),
                 .weight = weights.memory,
                 .out = each ? MemoryRange(out.view()) : losses,
                 .used = each ? MemoryRange(nullptr) : used,
                 .count = s.targets,
                 .classes = s.classes,
                 .inner = s.inner,
                 .ignored = ignored,
                 .weight_stride = weights.stride,
                 .per = division.per_item,
                 .with_weights = !each,
                 .faults = call.fault(FaultKind::Class, 1)})
        .run(division.global, division.local);
  }
  if (each) return out.finish();
  const LocalTensor tensors[] = {LocalTensor(losses.address(), compute, Dims{s.targets}),
                                 LocalTensor(used.address(), compute, Dims{s.targets}),
                                 LocalTensor(call.out(0).address(), call.out(0).dtype(), Dims{}),
                                 LocalTensor(call.out(1).address(), call.out(1).dtype(), Dims{})};
  const TensorView views[] = {tensors[0].view(), tensors[1].view(), tensors[2].view(),
                              tensors[3].view()};
  reduce::launch_reduce(call, {mode == 1 ? &kMeanLoss : &kSumLoss,
                               compute,
                               Dims{s.targets},
                               1,
                               {&views[0], &views[1]},
                               {&views[2], &views[3]}});
}

void run_backward(const OpCall& call) {
  const TensorView grad = call.args().tensor(Arg::grad_output),
                   self = call.args().tensor(Arg::self), target = call.args().tensor(Arg::target);
  const auto weight = call.args().optional_tensor(Arg::weight);
  const int64_t mode = call.args().integer(Arg::reduction),
                ignored = call.args().integer(Arg::ignore_index);
  const TensorView total = call.args().tensor(Arg::total_weight);
  const Shape s = shape_of(self);
  const bool each = mode == 0 && self.ndim() > 1;
  const Contiguous g(call, grad), t(call, target);
  ContiguousOutput out(call, call.out(0));
  copy::fill_tensor(call, out.view(), 0);
  Defines d = defines_for(target, weight, compute_type(self.dtype()));
  d.type(define::X, self.dtype())
      .type(define::G, grad.dtype())
      .type(define::TOTAL, total.dtype())
      .type(define::OUT, out.view().dtype());
  const Weights weights = weights_of(weight);
  const Division division = divide_targets(call, s.targets);
  call.launch(kernels::loss::nll::scatter, d,
              {.grad = g.view(),
               .target = t.view(),
               .weight = weights.memory,
               .total = total,
               .out = out.view(),
               .count = s.targets,
               .classes = s.classes,
               .inner = s.inner,
               .ignored = ignored,
               .weight_stride = weights.stride,
               .per = division.per_item,
               .grad_step = each,
               .mean = mode == 1,
               .faults = call.fault(FaultKind::Class, 1)})
      .run(division.global, division.local);
  out.finish();
}

// Operands other than `self` are read from the call's arguments.
struct NllLoss {
  TensorView self;
  bool backward;
};

void run_targets(const OpCall& call, const NllLoss& what) {
  (what.backward ? run_backward : run_forward)(call);
}

constinit const AlgorithmFor<NllLoss> kTargets(
    {.id = "nll_loss.targets",
     .description = "gathers what targets name, or scatters to it",
     .last_resort = true},
    Steps<takes_all<NllLoss>, run_targets>());

struct Traits {
  static std::string describe(const OpCall& call, const NllLoss& what) {
    return fmt::format("{} {} {}", call.name(), name(what.self.dtype()),
                       to_string(what.self.sizes()));
  }
};
using Algorithms = AlgorithmList<NllLoss, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("nll_loss", kNllOperators, {&kTargets});  // leaked
  return list;
}

void forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const NllLoss what{call.args().tensor(Arg::self), false};
  call.accept();
  algorithms().run(call, what);
}

void backward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView grad = call.args().tensor(Arg::grad_output),
                   self = call.args().tensor(Arg::self);
  const bool each = call.args().integer(Arg::reduction) == 0 && self.ndim() > 1;
  check(grad.numel() == (each ? shape_of(self).targets : 1), "{}: grad_output has shape {}",
        call.name(), to_string(grad.sizes()));
  check(call.args().tensor(Arg::total_weight).numel() == 1,
        "{}: total_weight must have one element", call.name());
  call.accept();
  if (self.numel() > 0) algorithms().run(call, {self, true});
}

constexpr OpEntry kOperators[] = {{"nll_loss_forward.output", forward},
                                  {"nll_loss2d_forward.output", forward},
                                  {"nll_loss_backward.grad_input", backward},
                                  {"nll_loss2d_backward.grad_input", backward}};

}  // namespace

const std::span<const OpEntry> kNllOperators = kOperators;

const AlgorithmFamily& nll_loss_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::loss
