// native_group_norm and its backward.
#include "call/division.h"
#include "norm.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"
#include "planes.h"

namespace ocltensor::opencl {
namespace {

Planes planes_of(const OpCall& call, size_t first) {
  const int64_t samples = call.args().integer(first);
  const int64_t channels = call.args().integer(first + 1);
  return {samples, channels, call.args().integer(first + 2), samples * channels,
          channels / call.args().integer(first + 3)};
}

void forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView input = call.args().tensor(0);
  const DType compute = compute_type(input.dtype());
  const ChannelVector weight = channel_vector(call, 1), bias = channel_vector(call, 2);
  (void)weight_type(call, weight, bias, compute);  // declines in time
  check(call.out(1).dtype() == call.out(2).dtype(), "{}: statistics of different types",
        call.name());
  call.accept();
  const Planes p = planes_of(call, 3);
  if (input.numel() == 0) {
    for (size_t i = 1; i < 3; ++i) fill_tensor(call, call.out(i), 0);
    return;
  }
  const Contiguous in(call, input);
  const ChannelVector none;
  planes_forward(call, {in.view(), weight, bias, none, none, p, true, {0, call.args().real(7)}});
}

void backward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
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
  const std::array<bool, 3> which{mask[0], mask[1], mask[2]};
  planes_backward(call, {dy.view(), x.view(), {mean, inverse, 1, 1, {}}, weight, p, true, which});
}

constexpr OpEntry kOperators[] = {{"native_group_norm.out", forward},
                                  {"native_group_norm_backward.out", backward}};

}  // namespace

const std::span<const OpEntry> kGroupNormOperators = kOperators;

}  // namespace ocltensor::opencl
