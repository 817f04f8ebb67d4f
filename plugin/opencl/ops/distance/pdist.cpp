// _pdist_forward and _pdist_backward: a launch each.
#include <cmath>
#include <cstring>

#include "call/division.h"
#include "distance.h"
#include "kernel_sources.h"
#include "ops/copy/copy.h"
#include "pdist_params.h"

namespace ocltensor::opencl {
namespace {

Launch pdist_launch(const OpCall& call, const char* function, TensorView self, double p) {
  Defines d;
  d.type("A", self.dtype()).set("CPU_STYLE", is_cpu_style(call));
  d.set("NORM", p == 0 ? 0 : p == 1 ? 1 : p == 2 ? 2 : std::isinf(p) ? 3 : 4);
  return call.launch(kernel_sources::distance_pdist, function, d);
}

void run(const OpCall& call, Launch& launch, TensorView self, double p, int64_t pieces) {
  PdistParams params{};
  params.pieces = pieces;
  params.rows = self.size(0);
  params.columns = self.size(1);
  const auto narrow = static_cast<float>(p);
  if (self.dtype() == DType::Float64)
    std::memcpy(&params.p, &p, sizeof p);
  else
    std::memcpy(&params.p, &narrow, sizeof narrow);
  const Division division = divide(call.caps(), pieces);
  params.per_item = division.per_item;
  launch.value(params).run(division.global, division.local);
}

void forward(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(0);
  const double p = call.args().real(1);
  call.accept();
  if (!call.wants(0)) return;
  if (self.size(1) == 0) return fill_tensor(call, call.out(0), 0);
  const Contiguous dense(call, self);
  ContiguousOutput out(call, call.out(0));
  Launch launch = pdist_launch(call, "forward", self, p);
  bind(launch, out.view());
  bind(launch, dense.view());
  run(call, launch, self, p, out.view().numel());
  out.finish();
}

void backward(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(1);
  const double p = call.args().real(2);
  call.accept();
  if (!call.wants(0)) return;
  if (p == 0 || self.size(0) == 1) return fill_tensor(call, call.out(0), 0);
  const Contiguous grad(call, call.args().tensor(0)), dense(call, self),
      distance(call, call.args().tensor(3));
  ContiguousOutput out(call, call.out(0));
  Launch launch = pdist_launch(call, "backward", self, p);
  bind(launch, out.view());
  bind(launch, grad.view());
  bind(launch, dense.view());
  bind(launch, distance.view());
  run(call, launch, self, p, out.view().numel());
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_pdist_forward.out", forward},
                                  {"_pdist_backward.out", backward}};

}  // namespace

std::span<const OpEntry> distance_operators() { return kOperators; }

}  // namespace ocltensor::opencl
