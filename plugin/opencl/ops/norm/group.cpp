// native_group_norm and its backward.
#include <optional>

#include "norm.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"
#include "planes_rows.h"

namespace ocltensor::opencl {
namespace {

Planes planes_of(const OpCall& call, size_t first) {
  const int64_t samples = call.args().integer(first);
  const int64_t channels = call.args().integer(first + 1);
  return {samples, channels, call.args().integer(first + 2), samples * channels,
          channels / call.args().integer(first + 3)};
}

void forward(OpCall& call) {
  (void)checked_outputs(call);
  const TensorView input = call.args().tensor(0);
  const DType compute = compute_type(input.dtype());
  const ChannelVector weight = channel_vector(call, 1), bias = channel_vector(call, 2);
  const DType w = weight_type(call, weight, bias, compute);
  check(call.out(1).dtype() == call.out(2).dtype(), "{}: statistics of different types",
        call.name());
  call.accept();
  const Planes p = planes_of(call, 3);
  if (input.numel() == 0) {
    for (size_t i = 1; i < 3; ++i) fill_tensor(call, call.out(i), 0);
    return;
  }
  const Contiguous in(call, input);
  if (planes_fit_rows(call, p))
    return planes_forward_rows(call, in.view(), weight, bias, {}, {}, p, true,
                               {0, call.args().real(7)});
  ContiguousOutput out(call, call.out(0)), save_mean(call, call.out(1)),
      save_scale(call, call.out(2));
  const Statistics batch = statistics(call, in.view(), p, compute);
  const Scratch table = call.scratch(static_cast<uint64_t>(3 * p.planes * size_of(compute)));
  Defines d;
  d.type("W", w)
      .type("S", call.out(1).dtype())
      .type("R", compute)
      .type("X", input.dtype())
      .set("TRAIN", 1)
      .set("HAS_SAVED", 1);
  d.set("HAS_WEIGHT", weight.tensor.has_value())
      .set("HAS_BIAS", bias.tensor.has_value())
      .set("HAS_RUNNING", int64_t{0});
  d.set("HAS_WEIGHT_GRAD", int64_t{0}).set("HAS_BIAS_GRAD", int64_t{0});
  Launch launch = channels_launch(call, "prepare", d, compute);
  bind(launch, in.view());
  bind_scratch(launch, &batch.offset);
  bind_scratch(launch, &batch.variance);
  weight.bind_to(launch);
  bias.bind_to(launch);
  launch.memory(0, 0, 0).memory(0, 0, 0);
  bind(launch, save_mean.view());
  bind(launch, save_scale.view());
  bind_scratch(launch, &table);
  const int64_t none = 0;
  launch.value(p.planes)
      .value(p.channels)
      .value(p.per_stat)
      .value(p.first_step())
      .value(weight.stride())
      .value(bias.stride());
  launch.value(none)
      .value(none)
      .value(number_bits(p.count(), compute))
      .value(number_bits(0.0, compute));
  launch.value(number_bits(call.args().real(7), compute));
  run_channels(call, launch, p.planes);
  apply(call, in.view(), nullptr, table, out.view(), p, compute);
  out.finish();
  save_mean.finish();
  save_scale.finish();
}

void backward(OpCall& call) {
  (void)checked_outputs(call);
  const TensorView grad = call.args().tensor(0), input = call.args().tensor(1);
  const TensorView mean = call.args().tensor(2), inverse = call.args().tensor(3);
  const ChannelVector weight = channel_vector(call, 4);
  const auto mask = call.args().booleans(9);
  const DType compute = compute_type(input.dtype());
  check(Dims(grad.sizes()) == Dims(input.sizes()), "{}: grad_out has shape {}, input {}",
        call.name(), to_string(grad.sizes()), to_string(input.sizes()));
  const Planes p = planes_of(call, 5);
  check(mean.numel() == p.stats() && inverse.numel() == p.stats(),
        "{}: mean and rstd must have {} elements", call.name(), p.stats());
  if (mean.dtype() != compute || inverse.dtype() != compute || !mean.is_contiguous() ||
      !inverse.is_contiguous())
    unsupported(TB_REASON_DTYPE, "{}: mean and rstd must be contiguous {}", call.name(),
                name(compute));
  for (size_t i = 1; i < 3; ++i)
    if (mask[i] && weight.tensor)
      check(call.out(i).dtype() == weight.tensor->dtype(),
            "{}: output {} must have the weight's type", call.name(), i);
  call.accept();
  const Contiguous dy(call, grad), x(call, input);
  planes_backward(call, dy.view(), x.view(), mean, inverse, weight, p, true,
                  {mask[0], mask[1], mask[2]});
}

constexpr OpEntry kOperators[] = {{"native_group_norm.out", forward},
                                  {"native_group_norm_backward.out", backward}};

}  // namespace

const std::span<const OpEntry> kGroupNormOperators = kOperators;

}  // namespace ocltensor::opencl
