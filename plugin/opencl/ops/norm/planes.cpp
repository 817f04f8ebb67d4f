// Statistics, application and gradients of normalisation by planes.
#include "planes.h"

#include <algorithm>
#include <optional>

#include "call/divide_up.h"
#include "kernel_sources.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"
#include "planes_cpu.h"
#include "planes_gpu.h"

namespace ocltensor::opencl {
namespace {

constexpr Reduction kGradientSums{2, {{"a", kAdd, "0", "x"}, {"a * (b - c)", kAdd, "0", "y"}}};

// The input's sizes as a reduction to statistics sees them, and the dimensions that it reduces.
struct View {
  Dims sizes;
  uint32_t mask;
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

void run_apply_cpu(Launch& launch, const Planes& p, bool channels_inner) {
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 4096;
  const int64_t rows = channels_inner ? p.samples : p.samples * p.channels;
  const int64_t n = channels_inner ? p.channels : p.inner;
  const int64_t piece = std::max(kSmallest, divide_up(rows * n, kPieces));
  const int64_t per = std::max<int64_t>(1, piece / n);
  const int64_t chunk = per > 1 ? n : std::min(n, divide_up(piece, 16) * 16);
  launch.value(rows).value(n).value(p.planes).value(per).value(chunk);
  launch.run(
      {static_cast<size_t>(divide_up(rows, per)), static_cast<size_t>(divide_up(n, chunk)), 1},
      {1, 1, 1});
}

}  // namespace

void bind_scratch(Launch& launch, const Scratch* scratch) {
  if (scratch == nullptr)
    launch.memory(0, 0, 0);
  else
    launch.memory(scratch->address(), 0, static_cast<int64_t>(scratch->bytes()));
}

void ChannelVector::bind_to(Launch& launch) const {
  if (tensor)
    bind(launch, *tensor);
  else
    launch.memory(0, 0, 0);
}

ChannelVector channel_vector(const OpCall& call, size_t argument) {
  const auto tensor = call.args().optional_tensor(argument);
  check(!tensor || tensor->ndim() == 1, "{}: argument {} must be a vector", call.name(), argument);
  return {tensor};
}

DType weight_type(const OpCall& call, const ChannelVector& weight, const ChannelVector& bias,
                  DType fallback) {
  if (weight.tensor && bias.tensor && weight.tensor->dtype() != bias.tensor->dtype())
    unsupported(TB_REASON_DTYPE, "{}: weight and bias of different types", call.name());
  return weight.tensor ? weight.tensor->dtype() : bias.tensor ? bias.tensor->dtype() : fallback;
}

Statistics statistics(const OpCall& call, TensorView input, const Planes& p, DType compute) {
  Statistics s{numbers(call, p.stats(), compute), numbers(call, p.stats(), compute)};
  const View v = statistics_view(p);
  const LocalTensor x(input.address(), input.dtype(), v.sizes);
  Dims kept = v.sizes;
  for (size_t d = 0; d < kept.size(); ++d)
    if (v.mask >> d & 1) kept[d] = 1;
  const LocalTensor first(input.address(), input.dtype(), kept, contiguous_strides(v.sizes));
  const LocalTensor offset(s.offset.address(), compute, kept);
  const LocalTensor variance(s.variance.address(), compute, kept);
  const TensorView views[] = {x.view(), first.view(), offset.view(), variance.view()};
  launch_reduce(call, {&kOffsetMean,
                       compute,
                       v.sizes,
                       v.mask,
                       {&views[0], &views[1]},
                       {&views[2]},
                       {p.count(), 0, 0, 0}});
  launch_reduce(call, {&kOffsetVariance,
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
  launch_reduce(call, {&kGradientSums,
                       compute,
                       v.sizes,
                       v.mask,
                       {&views[0], &views[1], &views[2]},
                       {&views[3], &views[4]}});
  return s;
}

void apply(const OpCall& call, TensorView input, const TensorView* grad, const Scratch& table,
           TensorView out, const Planes& p, DType compute) {
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  const bool channels_inner = p.inner == 1 && p.by_channel();
  Defines d;
  d.type("COMPUTE", compute).type("X", input.dtype()).type("OUT", out.dtype());
  if (grad != nullptr) d.set("BACKWARD", 1).type("DY", grad->dtype());
  if (channels_inner) d.set("CHANNELS_INNER", 1);
  const int64_t total = input.numel();
  if (gpu_style) d.set("INDEX", total < (int64_t{1} << 31) ? "uint" : "ulong");
  Launch launch = call.launch(
      gpu_style ? kernel_sources::norm_planes_apply_gpu : kernel_sources::norm_planes_apply_cpu,
      "apply", d);
  bind(launch, input);
  if (grad != nullptr)
    bind(launch, *grad);
  else
    launch.memory(0, 0, 0);
  bind_scratch(launch, &table);
  bind(launch, out);
  if (!gpu_style) return run_apply_cpu(launch, p, channels_inner);
  const int64_t group = group_size(call.caps());
  launch.value(total).value(p.inner).value(p.planes);
  launch.run({static_cast<size_t>(divide_up(total, group * 4) * group), 1, 1},
             {static_cast<size_t>(group), 1, 1});
}

Launch channels_launch(const OpCall& call, const char* function, Defines& d, DType compute) {
  d.type("COMPUTE", compute);
  return call.launch(kernel_sources::norm_planes_channels, function, d);
}

void run_channels(const OpCall& call, Launch& launch, int64_t items) {
  const int64_t local = call.caps().style == KernelStyle::Gpu ? 64 : 16;
  launch.run({static_cast<size_t>(divide_up(items, local) * local), 1, 1},
             {static_cast<size_t>(local), 1, 1});
}

DType gradient_weight_type(const OpCall& call, const ChannelVector& weight,
                           const std::array<bool, 3>& which, DType fallback) {
  return weight.tensor ? weight.tensor->dtype()
         : which[1]    ? call.out(1).dtype()
         : which[2]    ? call.out(2).dtype()
                       : fallback;
}

namespace {

// What norm/planes_channels.cl is compiled for to prepare a forward pass.
Defines forward_defines(const OpCall& call, TensorView input, const ChannelVector& weight,
                        const ChannelVector& bias, const ChannelVector& mean, bool train) {
  const DType compute = compute_type(input.dtype());
  Defines d;
  d.type("W", weight_type(call, weight, bias, compute))
      .type("S", call.out(1).dtype())
      .type("R", mean.tensor ? mean.tensor->dtype() : compute)
      .type("X", input.dtype())
      .set("TRAIN", train)
      .set("HAS_SAVED", train);
  d.set("HAS_WEIGHT", weight.tensor.has_value()).set("HAS_BIAS", bias.tensor.has_value());
  d.set("HAS_RUNNING", train && mean.tensor.has_value());
  return d.set("HAS_WEIGHT_GRAD", int64_t{0}).set("HAS_BIAS_GRAD", int64_t{0});
}

// What the backward kernels of norm/planes_channels.cl are compiled for.
Defines gradient_defines(const OpCall& call, const ChannelVector& weight, bool train,
                         const std::array<bool, 3>& which, DType compute) {
  Defines d;
  d.type("W", gradient_weight_type(call, weight, which, compute))
      .type("S", compute)
      .type("R", compute)
      .set("TRAIN", train)
      .set("HAS_WEIGHT", weight.tensor.has_value());
  d.set("HAS_BIAS", int64_t{0}).set("HAS_SAVED", int64_t{0}).set("HAS_RUNNING", int64_t{0});
  d.set("HAS_WEIGHT_GRAD", which[1]).set("HAS_BIAS_GRAD", which[2]);
  return d;
}

}  // namespace

void planes_forward(const OpCall& call, TensorView input, const ChannelVector& weight,
                    const ChannelVector& bias, const ChannelVector& mean,
                    const ChannelVector& variance, const Planes& p, bool train, NormNumbers given) {
  if (planes_fit_cpu(call, p))
    return planes_forward_cpu(call, input, weight, bias, mean, variance, p, train, given);
  if (planes_fit_gpu(call, p))
    return planes_forward_gpu(call, input, weight, bias, mean, variance, p, train, given);
  const DType compute = compute_type(input.dtype());
  ContiguousOutput out(call, call.out(0)), save_mean(call, call.out(1)),
      save_scale(call, call.out(2));
  std::optional<Statistics> batch;
  if (train) batch.emplace(statistics(call, input, p, compute));
  const Scratch table = numbers(call, 3 * p.planes, compute);
  Defines d = forward_defines(call, input, weight, bias, mean, train);
  Launch launch = channels_launch(call, "prepare", d, compute);
  if (train) {
    bind(launch, input);
    bind_scratch(launch, &batch->offset);
    bind_scratch(launch, &batch->variance);
  } else {
    launch.memory(0, 0, 0);
    mean.bind_to(launch);
    variance.bind_to(launch);
  }
  for (const ChannelVector* v : {&weight, &bias, &mean, &variance}) v->bind_to(launch);
  bind(launch, save_mean.view());
  bind(launch, save_scale.view());
  bind_scratch(launch, &table);
  launch.value(p.planes).value(p.channels).value(p.per_stat).value(p.first_step());
  for (const ChannelVector* v : {&weight, &bias, &mean, &variance}) launch.value(v->stride());
  for (const double v : {p.count(), given.momentum, given.eps})
    launch.value(number_bits(v, compute));
  run_channels(call, launch, p.planes);
  apply(call, input, nullptr, table, out.view(), p, compute);
  out.finish();
  save_mean.finish();
  save_scale.finish();
}

void weight_gradients(const OpCall& call, const GradientSums& s, TensorView inverse,
                      const ChannelVector& weight, const Planes& p, bool train,
                      const std::array<bool, 3>& which) {
  const DType compute = inverse.dtype();
  std::optional<ContiguousOutput> outs[2];
  for (size_t i = 0; i < 2; ++i)
    if (which[i + 1]) outs[i].emplace(call, call.out(i + 1));
  Defines d = gradient_defines(call, weight, train, which, compute);
  Launch weights = channels_launch(call, "weights_backward", d, compute);
  bind_scratch(weights, &s.sums);
  bind_scratch(weights, &s.dots);
  bind(weights, inverse);
  for (auto& out : outs) {
    if (out)
      bind(weights, out->view());
    else
      weights.memory(0, 0, 0);
  }
  weights.value(p.planes).value(p.channels).value(p.per_stat);
  run_channels(call, weights, p.channels);
  for (auto& out : outs)
    if (out) out->finish();
}

void planes_backward(const OpCall& call, TensorView grad, TensorView input, TensorView mean,
                     TensorView inverse, const ChannelVector& weight, const Planes& p, bool train,
                     const std::array<bool, 3>& which) {
  const DType compute = compute_type(input.dtype());
  if (input.numel() == 0) {
    for (size_t i = 1; i < 3; ++i)
      if (which[i]) fill_tensor(call, call.out(i), 0);
    return;
  }
  if (which[0] && planes_fit_cpu(call, p))
    return planes_backward_cpu(call, grad, input, mean, inverse, weight, p, train, which);
  if (which[0] && planes_fit_gpu(call, p))
    return planes_backward_gpu(call, grad, input, {mean, inverse, 1, 1, {}}, weight, p, train,
                               which);
  const GradientSums s = gradient_sums(call, grad, input, mean, p, compute);
  if (which[0]) {
    const Scratch table = numbers(call, 4 * p.planes, compute);
    Defines d = gradient_defines(call, weight, train, which, compute);
    Launch prepare = channels_launch(call, "prepare_backward", d, compute);
    bind_scratch(prepare, &s.sums);
    bind_scratch(prepare, &s.dots);
    bind(prepare, mean);
    bind(prepare, inverse);
    weight.bind_to(prepare);
    bind_scratch(prepare, &table);
    prepare.value(p.planes).value(p.channels).value(p.per_stat).value(weight.stride());
    prepare.value(number_bits(p.count(), compute));
    run_channels(call, prepare, p.planes);
    ContiguousOutput out(call, call.out(0));
    apply(call, input, &grad, table, out.view(), p, compute);
    out.finish();
  }
  if (which[1] || which[2]) weight_gradients(call, s, inverse, weight, p, train, which);
}

}  // namespace ocltensor::opencl
