// Statistics, application and gradients of normalisation by channel planes, and the lists of
// algorithms.
#include "planes.h"

#include <algorithm>
#include <optional>

#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "channels_last_gpu.h"
#include "kernels/norm.h"
#include "norm.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"
#include "planes_apply.h"
#include "planes_cpu.h"
#include "planes_gpu.h"

namespace ocltensor::opencl::norm {
namespace {

constexpr reduce::Reduction kGradientSums{
    2, {{"a", reduce::kAdd, "0", "x"}, {"a * (b - c)", reduce::kAdd, "0", "y"}}};

// The input's sizes as the reduction that makes statistics sees them, and the dimensions to reduce.
struct View {
  Dims sizes;
  DimMask mask;
};
View statistics_view(const Planes& p) {
  if (p.by_channel()) return {{p.samples, p.channels, p.inner}, 0b101};
  return {{p.stats(), p.per_stat * p.inner}, 0b10};
}
View planes_view(const Planes& p) {
  if (p.by_channel()) return {{p.samples, p.channels, p.inner}, 0b101};
  return {{p.stats(), p.per_stat, p.inner}, 0b100};
}

Scratch numbers(const OpCall& call, int64_t count, DType type) {
  return call.scratch(static_cast<uint64_t>(count * size_of(type)));
}

}  // namespace

ChannelVector channel_vector(const OpCall& call, Arg argument) {
  const auto tensor = call.args().optional_tensor(argument);
  check(!tensor || tensor->ndim() == 1, "{}: '{}' must be a vector", call.name(), name(argument));
  return {tensor};
}

DType weight_type(const OpCall& call, const ChannelVector& weight, const ChannelVector& bias,
                  DType fallback) {
  if (weight.tensor && bias.tensor && weight.tensor->dtype() != bias.tensor->dtype())
    unsupported(TB_REASON_DTYPE, "{}: weight and bias of different types", call.name());
  return weight.tensor ? weight.tensor->dtype() : bias.tensor ? bias.tensor->dtype() : fallback;
}

Affine affine_operands(const OpCall& call) {
  Affine a{channel_vector(call, Arg::weight), channel_vector(call, Arg::bias)};
  (void)weight_type(call, a.weight, a.bias, DType::Float32);  // declines mixed types
  return a;
}

Statistics statistics(const OpCall& call, TensorView input, const Planes& p, DType compute) {
  Statistics s{numbers(call, p.stats(), compute), numbers(call, p.stats(), compute)};
  const View v = statistics_view(p);
  const LocalTensor x(input.address(), input.dtype(), v.sizes);
  Dims kept = v.sizes;
  for (size_t d = 0; d < kept.size(); ++d)
    if (v.mask[d]) kept[d] = 1;
  const LocalTensor first(input.address(), input.dtype(), kept, contiguous_strides(v.sizes));
  const LocalTensor offset(s.offset.address(), compute, kept);
  const LocalTensor variance(s.variance.address(), compute, kept);
  const TensorView views[] = {x.view(), first.view(), offset.view(), variance.view()};
  reduce::launch_reduce(call, {&reduce::kOffsetMean,
                               compute,
                               v.sizes,
                               v.mask,
                               {&views[0], &views[1]},
                               {&views[2]},
                               {p.count(), 0, 0, 0}});
  reduce::launch_reduce(call, {&reduce::kOffsetVariance,
                               compute,
                               v.sizes,
                               v.mask,
                               {&views[0], &views[1], &views[2]},
                               {&views[3]},
                               {p.count(), 0, 0, 0}});
  return s;
}

GradientSums room_for_sums(const OpCall& call, const Planes& p, DType compute) {
  return {numbers(call, p.planes, compute), numbers(call, p.planes, compute)};
}

GradientSums gradient_sums(const OpCall& call, TensorView grad, TensorView input, TensorView mean,
                           const Planes& p, DType compute) {
  GradientSums s = room_for_sums(call, p, compute);
  const View v = planes_view(p);
  const Dims kept = p.by_channel() ? Dims{1, p.channels, 1} : Dims{p.stats(), p.per_stat, 1};
  const Dims of_mean = p.by_channel() ? kept : Dims{p.stats(), 1, 1};
  const LocalTensor dy(grad.address(), grad.dtype(), v.sizes);
  const LocalTensor x(input.address(), input.dtype(), v.sizes);
  const LocalTensor m(mean.address(), mean.dtype(), of_mean);
  const LocalTensor sums(s.sums.address(), compute, kept);
  const LocalTensor dots(s.dots.address(), compute, kept);
  const TensorView views[] = {dy.view(), x.view(), m.view(), sums.view(), dots.view()};
  reduce::launch_reduce(call, {&kGradientSums,
                               compute,
                               v.sizes,
                               v.mask,
                               {&views[0], &views[1], &views[2]},
                               {&views[3], &views[4]}});
  return s;
}

// Runs a kernel of norm/planes_channels.cl over `items` work-items.
void run_channels(const OpCall& call, Launch launch, int64_t items) {
  const auto local = by_style<int64_t>(call, 16, 64);
  launch.run({divide_up(items, local) * local, 1, 1}, {local, 1, 1});
}

DType gradient_weight_type(const OpCall& call, const ChannelVector& weight,
                           const std::array<bool, 3>& which, DType fallback) {
  return weight.tensor ? weight.tensor->dtype()
         : which[1]    ? call.out(1).dtype()
         : which[2]    ? call.out(2).dtype()
                       : fallback;
}

namespace {

// ---- Sweeps: statistics, numbers for each plane, and a last sweep that applies them

using Apply = void (*)(const OpCall&, const Application&);

// The defines of norm/planes_channels.cl for a forward pass.
Defines forward_defines(const OpCall& call, TensorView input, const ChannelVector& weight,
                        const ChannelVector& bias, const ChannelVector& mean, bool train) {
  const DType compute = compute_type(input.dtype());
  Defines d;
  d.type(define::W, weight_type(call, weight, bias, compute))
      .type(define::S, call.out(1).dtype())
      .type(define::R, mean.tensor ? mean.tensor->dtype() : compute)
      .type(define::X, input.dtype())
      .set(define::TRAIN, train)
      .set(define::HAS_SAVED, train)
      .type(define::COMPUTE, compute);
  d.set(define::HAS_WEIGHT, weight.tensor.has_value())
      .set(define::HAS_BIAS, bias.tensor.has_value());
  d.set(define::HAS_RUNNING, train && mean.tensor.has_value());
  return d.set(define::HAS_WEIGHT_GRAD, int64_t{0}).set(define::HAS_BIAS_GRAD, int64_t{0});
}

// The defines of the backward kernels of norm/planes_channels.cl.
Defines gradient_defines(const OpCall& call, const ChannelVector& weight, bool train,
                         const std::array<bool, 3>& which, DType compute) {
  Defines d;
  d.type(define::W, gradient_weight_type(call, weight, which, compute))
      .type(define::S, compute)
      .type(define::R, compute)
      .type(define::COMPUTE, compute)
      .set(define::TRAIN, train)
      .set(define::HAS_WEIGHT, weight.tensor.has_value());
  d.set(define::HAS_BIAS, int64_t{0})
      .set(define::HAS_SAVED, int64_t{0})
      .set(define::HAS_RUNNING, int64_t{0});
  d.set(define::HAS_WEIGHT_GRAD, which[1]).set(define::HAS_BIAS_GRAD, which[2]);
  return d;
}

template <Apply apply>
void forward_sweeps(const OpCall& call, const PlanesProblem& problem) {
  const auto& [input, out, weight, bias, mean, variance, p, train, given] = problem;
  const DType compute = compute_type(input.dtype());
  ContiguousOutput save_mean(call, call.out(1)), save_scale(call, call.out(2));
  std::optional<Statistics> batch;
  if (train) batch.emplace(statistics(call, input, p, compute));
  const Scratch table = numbers(call, 3 * p.planes, compute);
  run_channels(call,
               call.launch(kernels::norm::planes_channels::prepare,
                           forward_defines(call, input, weight, bias, mean, train),
                           {.x = train ? MemoryRange(input) : nullptr,
                            .mean = train ? MemoryRange(batch->offset) : mean,
                            .variance = train ? MemoryRange(batch->variance) : variance,
                            .weight = weight,
                            .bias = bias,
                            .running_mean = mean,
                            .running_var = variance,
                            .save_mean = save_mean,
                            .save_scale = save_scale,
                            .table = table,
                            .planes = p.planes,
                            .channels = p.channels,
                            .per_stat = p.per_stat,
                            .first_step = p.first_step(),
                            .weight_stride = weight.stride(),
                            .bias_stride = bias.stride(),
                            .mean_stride = mean.stride(),
                            .variance_stride = variance.stride(),
                            .count = scalar_bits(p.count(), compute),
                            .momentum = scalar_bits(given.momentum, compute),
                            .eps = scalar_bits(given.eps, compute)}),
               p.planes);
  apply(call, {input, nullptr, table, out, p, compute});
  save_mean.finish();
  save_scale.finish();
}

}  // namespace

void weight_gradients(const OpCall& call, const GradientSums& s, TensorView inverse,
                      const ChannelVector& weight, const Planes& p, bool train,
                      const std::array<bool, 3>& which) {
  const DType compute = inverse.dtype();
  std::optional<ContiguousOutput> outs[2];
  for (size_t i = 0; i < 2; ++i)
    if (which[i + 1]) outs[i].emplace(call, call.out(i + 1));
  run_channels(call,
               call.launch(kernels::norm::planes_channels::weights_backward,
                           gradient_defines(call, weight, train, which, compute),
                           {.sums = s.sums,
                            .dots = s.dots,
                            .inverse = inverse,
                            .grad_weight = outs[0],
                            .grad_bias = outs[1],
                            .planes = p.planes,
                            .channels = p.channels,
                            .per_stat = p.per_stat}),
               p.channels);
  for (auto& out : outs)
    if (out) out->finish();
}

namespace {

// Runs with inverse deviations, which the kernels for channels and for CPU drivers need: those of
// running variances are computed first.
void with_inverses(const OpCall& call, const PlanesGradient& problem,
                   void (*run)(const OpCall&, const PlanesGradient&)) {
  const SavedStatistics& saved = problem.saved;
  if (!saved.eps) return run(call, problem);
  const DType compute = compute_type(problem.input.dtype());
  const int64_t channels = problem.planes.channels;
  const Scratch pair = numbers(call, 2 * channels, compute);
  Defines d;
  d.type(define::W, compute)
      .type(define::S, compute)
      .type(define::R, saved.mean.dtype())
      .type(define::COMPUTE, compute)
      .set(define::TRAIN, int64_t{0});
  for (const DefineName name :
       {define::HAS_WEIGHT, define::HAS_BIAS, define::HAS_SAVED, define::HAS_RUNNING,
        define::HAS_WEIGHT_GRAD, define::HAS_BIAS_GRAD})
    d.set(name, int64_t{0});
  run_channels(call,
               call.launch(kernels::norm::planes_channels::inverses, d,
                           {.mean = saved.mean,
                            .variance = saved.inverse,
                            .result = pair,
                            .channels = channels,
                            .mean_stride = saved.mean_stride,
                            .variance_stride = saved.inverse_stride,
                            .eps = scalar_bits(*saved.eps, compute)}),
               channels);
  const LocalTensor mean(pair.address(), compute, Dims{channels});
  const LocalTensor inverse(pair.address() + pair.bytes() / 2, compute, Dims{channels});
  PlanesGradient own = problem;
  own.saved = {mean, inverse, 1, 1, {}};
  run(call, own);
}

template <Apply apply>
void backward_sweeps(const OpCall& call, const PlanesGradient& problem) {
  const auto& [grad, input, out, saved, weight, p, train, which] = problem;
  const DType compute = compute_type(input.dtype());
  const GradientSums s = gradient_sums(call, grad, input, saved.mean, p, compute);
  if (which[0]) {
    const Scratch table = numbers(call, 4 * p.planes, compute);
    run_channels(call,
                 call.launch(kernels::norm::planes_channels::prepare_backward,
                             gradient_defines(call, weight, train, which, compute),
                             {.sums = s.sums,
                              .dots = s.dots,
                              .mean = saved.mean,
                              .inverse = saved.inverse,
                              .weight = weight,
                              .table = table,
                              .planes = p.planes,
                              .channels = p.channels,
                              .per_stat = p.per_stat,
                              .weight_stride = weight.stride(),
                              .count = scalar_bits(p.count(), compute)}),
                 p.planes);
    apply(call, {input, &grad, table, out, p, compute});
  }
  if (which[1] || which[2]) weight_gradients(call, s, saved.inverse, weight, p, train, which);
}

// ---- The choice

const char* refuse_cpu(const OpCall& call, const PlanesProblem& p) {
  return refuse_planes_cpu(call, p.planes);
}
const char* refuse_gpu(const OpCall&, const PlanesProblem& p) {
  return refuse_planes_gpu(p.planes);
}
const char* refuse_channels_last(const OpCall&, const PlanesProblem& p) {
  return refuse_channels_last_gpu(p.planes);
}
const char* refuse_backward_channels_last(const OpCall&, const PlanesGradient& p) {
  return refuse_channels_last_gpu(p.planes);
}
const char* refuse_backward_cpu(const OpCall& call, const PlanesGradient& p) {
  return p.which[0] ? refuse_planes_cpu(call, p.planes) : "the input's gradient is not wanted";
}
const char* refuse_backward_gpu(const OpCall&, const PlanesGradient& p) {
  return p.which[0] ? refuse_planes_gpu(p.planes) : "the input's gradient is not wanted";
}
template <void (*run)(const OpCall&, const PlanesGradient&)>
void run_with_inverses(const OpCall& call, const PlanesGradient& problem) {
  with_inverses(call, problem, run);
}

using Forward = AlgorithmFor<PlanesProblem>;
constexpr AlgorithmInfo info(const char* id, DeviceStyle style, bool last_resort) {
  return {.id = id,
          .description = last_resort ? "statistics first, then a sweep that applies them"
                                     : "statistics and result in one kernel",
          .style = style,
          .last_resort = last_resort};
}
constinit const Forward kCpu(info("plane_norm.cpu", DeviceStyle::Cpu, false),
                             Steps<refuse_cpu, planes_forward_cpu>());
constinit const Forward kGpu(info("plane_norm.gpu", DeviceStyle::Gpu, false),
                             Steps<refuse_gpu, planes_forward_gpu>());
constinit const Forward kGpuChannelsLast({.id = "plane_norm.gpu_channels_last",
                                          .description = "rows of channels, read along the rows",
                                          .style = DeviceStyle::Gpu},
                                         Steps<refuse_channels_last, channels_last_forward_gpu>());
constinit const Forward kCpuSweeps(info("plane_norm.cpu_sweeps", DeviceStyle::Cpu, true),
                                   Steps<takes_all<PlanesProblem>, forward_sweeps<apply_cpu>>());
constinit const Forward kGpuSweeps(info("plane_norm.gpu_sweeps", DeviceStyle::Gpu, true),
                                   Steps<takes_all<PlanesProblem>, forward_sweeps<apply_gpu>>());

using Backward = AlgorithmFor<PlanesGradient>;
constinit const Backward kBackwardCpu(
    info("plane_norm_backward.cpu", DeviceStyle::Cpu, false),
    Steps<refuse_backward_cpu, run_with_inverses<planes_backward_cpu>>());
constinit const Backward kBackwardGpu(info("plane_norm_backward.gpu", DeviceStyle::Gpu, false),
                                      Steps<refuse_backward_gpu, planes_backward_gpu>());
constinit const Backward kBackwardGpuChannelsLast(
    {.id = "plane_norm_backward.gpu_channels_last",
     .description = "rows of channels, read along the rows",
     .style = DeviceStyle::Gpu},
    Steps<refuse_backward_channels_last, channels_last_backward_gpu>());
constinit const Backward kBackwardCpuSweeps(
    info("plane_norm_backward.cpu_sweeps", DeviceStyle::Cpu, true),
    Steps<takes_all<PlanesGradient>, run_with_inverses<backward_sweeps<apply_cpu>>>());
constinit const Backward kBackwardGpuSweeps(
    info("plane_norm_backward.gpu_sweeps", DeviceStyle::Gpu, true),
    Steps<takes_all<PlanesGradient>, run_with_inverses<backward_sweeps<apply_gpu>>>());

struct PlanesTraits {
  template <typename Problem>
  static std::string describe(const OpCall& call, const Problem& problem) {
    const Planes& p = problem.planes;
    return fmt::format("{} {} {}x{}x{}", call.name(), name(problem.input.dtype()), p.samples,
                       p.channels, p.inner);
  }
};
using ForwardAlgorithms = AlgorithmList<PlanesProblem, PlanesTraits>;
using BackwardAlgorithms = AlgorithmList<PlanesGradient, PlanesTraits>;

ForwardAlgorithms& forward_algorithms() {
  static ForwardAlgorithms& list = *new ForwardAlgorithms(  // leaked, as all lists
      "plane_norm", norm_operators(), {&kCpu, &kGpu, &kGpuChannelsLast, &kCpuSweeps, &kGpuSweeps});
  return list;
}
BackwardAlgorithms& backward_algorithms() {
  static BackwardAlgorithms& list =
      *new BackwardAlgorithms("plane_norm_backward", norm_operators(),
                              {&kBackwardCpu, &kBackwardGpu, &kBackwardGpuChannelsLast,
                               &kBackwardCpuSweeps, &kBackwardGpuSweeps});
  return list;
}

}  // namespace

void planes_forward(const OpCall& call, const PlanesProblem& problem) {
  forward_algorithms().run(call, problem);
}

void planes_backward(const OpCall& call, const PlanesGradient& problem) {
  if (problem.input.numel() > 0) return backward_algorithms().run(call, problem);
  for (size_t i = 1; i < 3; ++i)
    if (problem.which[i]) copy::fill_tensor(call, call.out(i), 0);
}

const AlgorithmFamily& plane_norm_algorithms() { return forward_algorithms().family(); }
const AlgorithmFamily& plane_norm_backward_algorithms() { return backward_algorithms().family(); }

}  // namespace ocltensor::opencl::norm
