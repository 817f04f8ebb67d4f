// Launches norm/planes_gpu*.cl.
#include "planes_gpu.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "call/divide_up.h"
#include "call/scalar_bits.h"
#include "kernels/norm.h"
#include "norm_elements_params.h"
#include "ops/reduce/reduction.h"
#include "planes_operands.h"

namespace ocltensor::opencl::norm {

int64_t vector_width(int64_t length, std::initializer_list<TensorView> tensors) {
  int64_t largest = 1;
  for (const TensorView& t : tensors)
    largest = std::max(largest, static_cast<int64_t>(size_of(t.dtype())));
  const auto fits = [&](int64_t width) {
    return length % width == 0 && std::ranges::all_of(tensors, [&](const TensorView& t) {
             return t.address() % static_cast<uint64_t>(width * size_of(t.dtype())) == 0;
           });
  };
  int64_t width = 16 / largest;
  while (width > 1 && !fits(width)) width /= 2;
  return width;
}

namespace {

// The work of a launch: `width` elements per vector, `group` work-items per work-group.
struct Work {
  NormElementsParams n{};
  int64_t width, group;

  int64_t vectors() const { return n.runs * n.length; }
  // Cuts each unit into about `pieces` pieces, and gives every work-item at least four vectors.
  void cut(int64_t pieces) {
    const int64_t total = vectors();
    const auto enough = std::bit_ceil(static_cast<uint64_t>(divide_up(total, 4)));
    const int64_t lanes = pieces > 1 ? group : std::min(group, static_cast<int64_t>(enough));
    n.lanes = static_cast<uint32_t>(lanes);
    n.piece = divide_up(divide_up(total, pieces), lanes) * lanes;
    n.pieces = divide_up(total, n.piece);
    n.step_runs = static_cast<uint32_t>(lanes / n.length);
    n.step_rest = static_cast<uint32_t>(lanes % n.length);
  }
  void run(Launch launch) const {
    const int64_t groups = n.weight_groups + divide_up(n.units, group / n.lanes) * n.pieces;
    launch.run({groups * group, 1, 1}, {group, 1, 1});
  }
};

Work statistics_work(const OpCall& call, const Planes& p, int64_t width, DType compute) {
  Work w;
  w.width = width;
  w.group = reduce::group_size(call.caps());
  w.n.units = p.stats();
  w.n.runs = p.by_channel() ? p.samples : p.per_stat;
  w.n.length = p.inner / width;
  w.n.run_step = (p.by_channel() ? p.channels : 1) * w.n.length;
  w.n.unit_step = p.per_stat * w.n.length;
  w.n.channels = p.channels;
  w.n.unit_channels = p.per_stat;
  w.n.sharing = 1;
  w.n.count = scalar_bits(p.count(), compute);
  return w;
}

// The same work with each plane as a unit.
Work planes_work(Work w) {
  w.n.units *= w.n.runs;
  w.n.sharing = w.n.runs;
  w.n.unit_step = w.n.length;
  w.n.runs = 1;
  return w;
}

// Pieces of a unit: about four work-groups per compute unit, at least 4096 elements in a piece, and
// no more pieces than a work-group has work-items.
int64_t pieces_for(const OpCall& call, const Work& w) {
  const int64_t wanted = 4 * static_cast<int64_t>(call.caps().compute_units) / w.n.units;
  return std::clamp<int64_t>(std::min(wanted, w.vectors() * w.width / 4096), 1, w.group);
}

// Whether one work-group per statistic is faster than two launches: it takes less time than a
// launch, or there are enough statistics to fill the device.
bool in_one(const OpCall& call, const Work& w) {
  constexpr int64_t kSoon = 16384;  // elements
  return w.vectors() * w.width <= kSoon ||
         2 * w.n.units >= 3 * static_cast<int64_t>(call.caps().compute_units);
}

// For units in one piece: in long ones a larger work-group keeps more loads in flight.
void widen(const OpCall& call, Work& w) {
  if (w.vectors() * w.width >= 4096 && call.caps().max_work_group_size >= 512) w.group = 512;
}

Defines defines_for(const Work& w, int64_t elements, DType compute) {
  Defines d;
  d.type(define::COMPUTE, compute)
      .set(define::VEC, w.width)
      .set(define::GROUP, w.group)
      .set(define::INDEX, elements < (int64_t{1} << 31) ? "uint" : "ulong");
  return d;
}

}  // namespace

const char* refuse_planes_gpu(const Planes& p) {
  return p.by_channel() && p.inner < 4 ? "planes are too short to read along" : nullptr;
}

void planes_forward_gpu(const OpCall& call, const PlanesProblem& problem) {
  const auto& [input, out, weight, bias, mean, variance, p, train, numbers] = problem;
  const DType compute = compute_type(input.dtype());
  ContiguousOutput save_mean(call, call.out(1)), save_scale(call, call.out(2));
  Work w = statistics_work(call, p, vector_width(p.inner, {input, out}), compute);
  const bool merge = train && !in_one(call, w);
  if (train && !merge) widen(call, w);
  w.cut(train && !merge ? 1 : pieces_for(call, w));
  set_operands(w.n, problem);
  Defines d = defines_for(w, input.numel(), compute);
  define_operands(d, call, problem);
  d.set(define::BY_CHANNEL, p.by_channel()).set(define::MERGE, merge);
  std::optional<Scratch> partials;
  if (merge) {
    partials.emplace(
        call.scratch(static_cast<uint64_t>((2 * w.n.pieces + 1) * w.n.units * size_of(compute))));
    w.run(call.launch(kernels::norm::planes_gpu::moments, d,
                      {.x = input, .partials = partials, .p = w.n}));
  }
  w.run(call.launch(kernels::norm::planes_gpu::planes_norm, d,
                    {.x = input,
                     .weight = weight,
                     .bias = bias,
                     .running_mean = mean,
                     .running_var = variance,
                     .save_mean = save_mean,
                     .save_scale = save_scale,
                     .partials = partials,
                     .out = out,
                     .p = w.n}));
  save_mean.finish();
  save_scale.finish();
}

void planes_backward_gpu(const OpCall& call, const PlanesGradient& problem) {
  const auto& [grad, input, out, saved, weight, p, train, which] = problem;
  const DType compute = compute_type(input.dtype());
  Work w = statistics_work(call, p, vector_width(p.inner, {grad, input, out}), compute);
  set_operands(w.n, problem);
  const bool merge = !p.by_channel() || !in_one(call, w);
  if (!merge) widen(call, w);
  w.cut(merge ? pieces_for(call, w) : 1);
  Defines d = defines_for(w, input.numel(), compute);
  define_operands(d, call, problem);
  d.set(define::BY_CHANNEL, p.by_channel()).set(define::MERGE, merge);
  std::optional<Scratch> partials;
  if (merge) {
    Work sums = p.by_channel() ? w : planes_work(w);
    sums.cut(pieces_for(call, sums));
    partials.emplace(
        call.scratch(static_cast<uint64_t>(2 * sums.n.pieces * sums.n.units * size_of(compute))));
    w.n.plane_partials = sums.n.pieces;
    w.n.partials = sums.n.pieces * sums.n.units / w.n.units;
    sums.run(call.launch(
        kernels::norm::planes_gpu_backward::sums, d,
        {.dy = grad, .x = input, .mean = saved.mean, .partials = partials, .p = sums.n}));
  }
  if (!p.by_channel() && (which[1] || which[2]))
    w.n.weight_groups = static_cast<uint32_t>(divide_up(p.channels, w.group));
  std::array<std::optional<ContiguousOutput>, 2> outs;
  for (size_t i = 0; i < 2; ++i)
    if (which[i + 1]) outs[i].emplace(call, call.out(i + 1));
  w.run(call.launch(kernels::norm::planes_gpu_backward::planes_gradient, d,
                    {.dy = grad,
                     .x = input,
                     .mean = saved.mean,
                     .inverse = saved.inverse,
                     .weight = weight,
                     .partials = partials,
                     .dw = outs[0],
                     .db = outs[1],
                     .out = out,
                     .p = w.n}));
  for (auto& o : outs)
    if (o) o->finish();
}

}  // namespace ocltensor::opencl::norm
