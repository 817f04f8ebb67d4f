// Launches norm/planes_cpu*.cl.
#include "planes_cpu.h"

#include <algorithm>
#include <optional>

#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/norm.h"
#include "norm_planes_params.h"
#include "ops/reduce/reduction.h"
#include "planes_operands.h"

namespace ocltensor::opencl::norm {
namespace {

NormPlanesParams params_for(const Planes& p, DType compute) {
  NormPlanesParams n{};
  n.stats = p.stats();
  n.pieces = p.by_channel() ? p.samples : p.per_stat;
  n.stat_step = p.by_channel() ? 1 : p.per_stat;
  n.piece_step = p.by_channel() ? p.channels : 1;
  n.inner = p.inner;
  n.channels = p.channels;
  n.count = scalar_bits(p.count(), compute);
  return n;
}

// Divides the statistics among work-items and sets n.per, the number that each takes.
Division divide_statistics(const OpCall& call, NormPlanesParams& n) {
  constexpr int64_t kSmallest = 4096;  // elements
  const Division division =
      divide(call.caps(), n.stats, std::max<int64_t>(1, kSmallest / (n.pieces * n.inner)));
  n.per = division.per_item;
  return division;
}

}  // namespace

const char* refuse_planes_cpu(const OpCall& call, const Planes& p) {
  constexpr int64_t kMostPieces = 4096;  // their sums are added up one after the other
  const int64_t pieces = p.by_channel() ? p.samples : p.per_stat;
  if (p.inner < 16) return "planes are too short for vectors";
  if (pieces > kMostPieces) return "statistics have too many planes to be added up in turn";
  return p.stats() < 2 * static_cast<int64_t>(call.caps().compute_units)
             ? "there are too few statistics to keep the processors busy"
             : nullptr;
}

void planes_forward_cpu(const OpCall& call, const PlanesProblem& problem) {
  const auto& [input, out, weight, bias, mean, variance, p, train, numbers] = problem;
  const DType compute = compute_type(input.dtype());
  ContiguousOutput save_mean(call, call.out(1)), save_scale(call, call.out(2));
  Defines d;
  d.type(define::COMPUTE, compute).set(define::BY_CHANNEL, train && p.by_channel());
  define_operands(d, call, problem);
  NormPlanesParams n = params_for(p, compute);
  if (!train) {  // every plane is normalised by itself
    n.stats = p.samples * p.channels;
    n.pieces = n.stat_step = 1;
  }
  set_operands(n, problem);
  const Division division = divide_statistics(call, n);
  call.launch(kernels::norm::planes_cpu::planes_norm, d,
              {.x = input,
               .weight = weight,
               .bias = bias,
               .running_mean = mean,
               .running_var = variance,
               .save_mean = save_mean,
               .save_scale = save_scale,
               .out = out,
               .p = n})
      .run(division.global, division.local);
  save_mean.finish();
  save_scale.finish();
}

void planes_backward_cpu(const OpCall& call, const PlanesGradient& problem) {
  const auto& [grad, input, out, saved, weight, p, train, which] = problem;
  const DType compute = compute_type(input.dtype());
  const bool direct = p.by_channel();
  Defines d;
  d.type(define::COMPUTE, compute)
      .type(define::X, input.dtype())
      .type(define::DY, grad.dtype())
      .type(define::OUT, out.dtype())
      .type(define::W, gradient_weight_type(call, weight, which, compute))
      .set(define::HAS_WEIGHT, weight.tensor.has_value())
      .set(define::HAS_WEIGHT_GRAD, direct && which[1])
      .set(define::HAS_BIAS_GRAD, direct && which[2])
      .set(define::BY_CHANNEL, direct)
      .set(define::TRAIN, train);
  NormPlanesParams n = params_for(p, compute);
  n.weight_stride = weight.stride();
  std::optional<GradientSums> sums;
  if (!direct) sums.emplace(room_for_sums(call, p, compute));
  std::optional<ContiguousOutput> outs[2];
  for (size_t i = 0; direct && i < 2; ++i)
    if (which[i + 1]) outs[i].emplace(call, call.out(i + 1));
  const Division division = divide_statistics(call, n);
  call.launch(kernels::norm::planes_cpu_backward::planes_norm, d,
              {.dy = grad,
               .x = input,
               .mean = saved.mean,
               .inverse = saved.inverse,
               .weight = weight,
               .dw = sums ? MemoryRange(sums->dots) : outs[0],
               .db = sums ? MemoryRange(sums->sums) : outs[1],
               .out = out,
               .p = n})
      .run(division.global, division.local);
  for (auto& o : outs)
    if (o) o->finish();
  if (!direct && (which[1] || which[2]))
    weight_gradients(call, *sums, saved.inverse, weight, p, train, which);
}

}  // namespace ocltensor::opencl::norm
