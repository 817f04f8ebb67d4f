// _pdist_forward and _pdist_backward, one launch each.
#include <cmath>
#include <cstring>

#include "call/division.h"
#include "distance.h"
#include "kernels/distance.h"
#include "ops/copy/copy.h"
#include "pdist_params.h"

namespace ocltensor::opencl::distance {
namespace {

// All tensors are row-major; the gradient needs `grad` and `distance`, forward does not.
struct Pdist {
  TensorView out, self;
  double p;
  const TensorView *grad = nullptr, *distance = nullptr;
};

void run_pdist(const OpCall& call, const Pdist& what) {
  const TensorView self = what.self;
  const double p = what.p;
  Defines d;
  d.type(define::A, self.dtype());
  d.set(define::NORM, p == 0 ? 0 : p == 1 ? 1 : p == 2 ? 2 : std::isinf(p) ? 3 : 4);
  PdistParams params{};
  params.pieces = what.out.numel();
  params.rows = self.size(0);
  params.columns = self.size(1);
  const auto narrow = static_cast<float>(p);
  if (self.dtype() == DType::Float64)
    std::memcpy(&params.p, &p, sizeof p);
  else
    std::memcpy(&params.p, &narrow, sizeof narrow);
  const Division division = divide(call.caps(), params.pieces);
  params.per_item = division.per_item;
  if (what.grad == nullptr)
    call.launch(kernels::distance::pdist::forward, d, {.out = what.out, .self = self, .p = params})
        .run(division.global, division.local);
  else
    call.launch(kernels::distance::pdist::backward, d,
                {.out = what.out,
                 .grad = what.grad,
                 .self = self,
                 .distance = what.distance,
                 .p = params})
        .run(division.global, division.local);
}

constinit const AlgorithmFor<Pdist> kPdist(
    {.id = "distance.pdist",
     .description = "a pair of rows, or an element of their gradients, after another",
     .last_resort = true},
    Steps<takes_all<Pdist>, run_pdist>());

struct Traits {
  static std::string describe(const OpCall& call, const Pdist& what) {
    return fmt::format("{} {} {} x {}", call.name(), name(what.self.dtype()), what.self.size(0),
                       what.self.size(1));
  }
};
using Algorithms = AlgorithmList<Pdist, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("distance", distance_operators(), {&kPdist});  // leaked
  return list;
}

void forward(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  const double p = call.args().real(Arg::p);
  call.accept();
  if (!call.wants(0)) return;
  if (self.size(1) == 0) return copy::fill_tensor(call, call.out(0), 0);
  const Contiguous dense(call, self);
  ContiguousOutput out(call, call.out(0));
  algorithms().run(call, {out.view(), dense.view(), p});
  out.finish();
}

void backward(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  const double p = call.args().real(Arg::p);
  call.accept();
  if (!call.wants(0)) return;
  if (p == 0 || self.size(0) == 1) return copy::fill_tensor(call, call.out(0), 0);
  const Contiguous grad(call, call.args().tensor(Arg::grad)), dense(call, self),
      distance(call, call.args().tensor(Arg::pdist));
  ContiguousOutput out(call, call.out(0));
  const TensorView grad_view = grad.view(), distance_view = distance.view();
  algorithms().run(call, {out.view(), dense.view(), p, &grad_view, &distance_view});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_pdist_forward.out", forward},
                                  {"_pdist_backward.out", backward}};

}  // namespace

std::span<const OpEntry> distance_operators() { return kOperators; }

const AlgorithmFamily& distance_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::distance
