// _ctc_loss and its backward operator: all steps over time in one launch.
#include <algorithm>

#include "call/division.h"
#include "ctc_params.h"
#include "kernels/loss.h"
#include "loss.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::loss {
namespace {

class Ctc {
 public:
  Ctc(const OpCall& call, bool zero_infinity)
      : call_(call),
        probs_(call.args().tensor(Arg::log_probs)),
        targets_(call.args().tensor(Arg::targets)),
        inputs_(call.args().ints(Arg::input_lengths)),
        lengths_(call.args().ints(Arg::target_lengths)) {
    p.time = probs_.size(0);
    p.samples = probs_.size(1);
    p.classes = probs_.size(2);
    p.blank = call.args().integer(Arg::blank);
    p.zero_infinity = zero_infinity;
    p.places = 1;
    for (const int64_t length : lengths_) p.places = std::max(p.places, 2 * length + 1);
    if (p.places >= INT32_MAX)
      unsupported(TB_REASON_SIZE, "{}: targets are limited to 2^30 labels", call.name());
  }
  TensorView probs() const { return probs_; }
  TensorView targets() const { return targets_; }

  // The table of samples for the kernels, in device memory.
  Scratch samples() const {
    std::vector<CtcSample> list;
    int64_t start = 0;
    for (size_t n = 0; n < inputs_.size(); ++n) {
      const bool rows = targets_.ndim() == 2;
      list.push_back(
          {inputs_[n], lengths_[n], rows ? static_cast<int64_t>(n) * targets_.size(1) : start});
      start += lengths_[n];
    }
    Scratch memory = call_.scratch(list.size() * sizeof(CtcSample));
    const Place place = resolve(memory.address(), 0, static_cast<int64_t>(memory.bytes()));
    call_.stream().write(place.buffer, place.offset, list.data(), memory.bytes(), false);
    return memory;
  }

  Defines defines(const Division& division) const {
    Defines d;
    d.type(define::A, probs_.dtype()).type(define::TARGET, targets_.dtype());
    d.set(define::GROUP_SIZE, division.local[0]);
    return d;
  }
  CtcParams params(int64_t pieces, const Division& division) const {
    CtcParams cut = p;
    cut.pieces = pieces;
    cut.per_item = division.per_item;
    return cut;
  }

  CtcParams p{};

 private:
  const OpCall& call_;
  TensorView probs_, targets_;
  std::span<const int64_t> inputs_, lengths_;
};

// Divides `pieces` of work, each of `width` places or classes.
using Divide = Division (*)(const OpCall& call, int64_t pieces, int64_t width);

Division divide_among_items(const OpCall& call, int64_t pieces, int64_t) {
  return divide(call.caps(), pieces);
}
// One work-group per piece, whose work-items share its width.
Division divide_among_groups(const OpCall& call, int64_t pieces, int64_t width) {
  const auto most = std::min<int64_t>(256, call.caps().max_work_group_size);
  int64_t local = std::min<int64_t>(32, most);
  while (local < width && local * 2 <= most) local *= 2;
  Division division;
  division.local[0] = local;
  division.global[0] = pieces * local;
  return division;
}

void run_forward(const OpCall& call, const Ctc& ctc, Divide divide) {
  const Scratch samples = ctc.samples();
  const Contiguous probs(call, ctc.probs()), targets(call, ctc.targets());
  ContiguousOutput loss(call, call.out(0)), alphas(call, call.out(1));
  const Division division = divide(call, ctc.p.samples, ctc.p.places);
  call.launch(kernels::loss::ctc::forward, ctc.defines(division),
              {.loss = loss.view(),
               .alpha = alphas.view(),
               .prob = probs.view(),
               .target = targets.view(),
               .sample = samples,
               .faults = call.fault(FaultKind::Class, 2),
               .p = ctc.params(ctc.p.samples, division)})
      .run(division.global, division.local);
  loss.finish();
  alphas.finish();
}

void run_backward(const OpCall& call, const Ctc& ctc, Divide divide) {
  const Scratch samples = ctc.samples();
  const Contiguous grad(call, call.args().tensor(Arg::grad)), probs(call, ctc.probs()),
      targets(call, ctc.targets()), loss(call, call.args().tensor(Arg::neg_log_likelihood)),
      alphas(call, call.args().tensor(Arg::log_alpha));
  const auto numbers = static_cast<uint64_t>(ctc.p.samples * ctc.p.places) *
                       static_cast<uint64_t>(size_of(ctc.probs().dtype()));
  const Scratch both = call.scratch(numbers * static_cast<uint64_t>(ctc.p.time));
  const Scratch betas = call.scratch(numbers * 2);
  const Scratch links = call.scratch(static_cast<uint64_t>(ctc.p.samples * ctc.p.places) * 4);
  const Division by_sample = divide(call, ctc.p.samples, ctc.p.places);
  call.launch(kernels::loss::ctc::backward, ctc.defines(by_sample),
              {.both = both,
               .beta = betas,
               .link = links,
               .alpha = alphas.view(),
               .prob = probs.view(),
               .target = targets.view(),
               .sample = samples,
               .faults = call.fault(FaultKind::Class, 2),
               .p = ctc.params(ctc.p.samples, by_sample)})
      .run(by_sample.global, by_sample.local);
  ContiguousOutput out(call, call.out(0));
  const int64_t steps = ctc.p.time * ctc.p.samples;
  const Division by_step = divide(call, steps, ctc.p.classes);
  call.launch(kernels::loss::ctc::gradient, ctc.defines(by_step),
              {.out = out.view(),
               .grad = grad.view(),
               .both = both,
               .link = links,
               .loss = loss.view(),
               .prob = probs.view(),
               .target = targets.view(),
               .sample = samples,
               .p = ctc.params(steps, by_step)})
      .run(by_step.global, by_step.local);
  out.finish();
}

struct CtcProblem {
  const Ctc& ctc;
  bool backward;
};

void run_with(const OpCall& call, const CtcProblem& problem, Divide divide) {
  (problem.backward ? run_backward : run_forward)(call, problem.ctc, divide);
}
void run_items(const OpCall& call, const CtcProblem& problem) {
  run_with(call, problem, divide_among_items);
}
void run_groups(const OpCall& call, const CtcProblem& problem) {
  run_with(call, problem, divide_among_groups);
}

constinit const AlgorithmFor<CtcProblem> kItems(
    {.id = "ctc_loss.items",
     .description = "a work-item goes through a sample's steps and places",
     .style = DeviceStyle::Cpu,
     .last_resort = true},
    Steps<takes_all<CtcProblem>, run_items>());
constinit const AlgorithmFor<CtcProblem> kGroups(
    {.id = "ctc_loss.groups",
     .description = "a work-group goes through a sample's steps, its places side by side",
     .style = DeviceStyle::Gpu,
     .last_resort = true},
    Steps<takes_all<CtcProblem>, run_groups>());

struct Traits {
  static std::string describe(const OpCall& call, const CtcProblem& problem) {
    const CtcParams& p = problem.ctc.p;
    return fmt::format("{} {} steps of {} samples, {} classes", call.name(), p.time, p.samples,
                       p.classes);
  }
};
using Algorithms = AlgorithmList<CtcProblem, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("ctc_loss", kCtcOperators, {&kItems, &kGroups});  // leaked
  return list;
}

void forward(OpCall& call) {
  check_outputs(call);
  const Ctc ctc(call, false);
  call.accept();
  if (ctc.p.samples > 0) algorithms().run(call, {ctc, false});
}

void backward(OpCall& call) {
  check_outputs(call);
  const Ctc ctc(call, call.args().boolean(Arg::zero_infinity));
  call.accept();
  if (call.wants(0)) algorithms().run(call, {ctc, true});
}

constexpr OpEntry kOperators[] = {{"_ctc_loss.out", forward}, {"_ctc_loss_backward.out", backward}};

}  // namespace

const std::span<const OpEntry> kCtcOperators = kOperators;

const AlgorithmFamily& ctc_loss_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::loss
