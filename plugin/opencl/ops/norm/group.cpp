// native_group_norm and its backward.
#include "call/division.h"
#include "norm.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"
#include "planes.h"

namespace ocltensor::opencl::norm {
namespace {

Planes planes_of(const OpCall& call) {
  const int64_t samples = call.args().integer(Arg::N);
  const int64_t channels = call.args().integer(Arg::C);
  return {samples, channels, call.args().integer(Arg::HxW), samples * channels,
          channels / call.args().integer(Arg::group)};
}

void forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView input = call.args().tensor(Arg::input);
  const auto [weight, bias] = affine_operands(call);
  check(call.out(1).dtype() == call.out(2).dtype(), "{}: statistics of different types",
        call.name());
  call.accept();
  const Planes p = planes_of(call);
  if (input.numel() == 0) {
    for (size_t i = 1; i < 3; ++i) copy::fill_tensor(call, call.out(i), 0);
    return;
  }
  const Contiguous in(call, input);
  ContiguousOutput out(call, call.out(0));
  const ChannelVector none;
  const NormNumbers numbers{0, call.args().real(Arg::eps)};
  planes_forward(call, {in.view(), out.view(), weight, bias, none, none, p, true, numbers});
  out.finish();
}

void backward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView grad = call.args().tensor(Arg::grad_out), input = call.args().tensor(Arg::input);
  const TensorView mean = call.args().tensor(Arg::mean), inverse = call.args().tensor(Arg::rstd);
  const ChannelVector weight = channel_vector(call, Arg::weight);
  const auto mask = call.args().booleans(Arg::output_mask);
  const DType compute = compute_type(input.dtype());
  check(Dims(grad.sizes()) == Dims(input.sizes()), "{}: grad_out has shape {}, input {}",
        call.name(), to_string(grad.sizes()), to_string(input.sizes()));
  const Planes p = planes_of(call);
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
  std::optional<ContiguousOutput> out;
  if (mask[0]) out.emplace(call, call.out(0));
  planes_backward(call, {dy.view(),
                         x.view(),
                         out ? out->view() : x.view(),
                         {mean, inverse, 1, 1, {}},
                         weight,
                         p,
                         true,
                         which});
  if (out) out->finish();
}

constexpr OpEntry kOperators[] = {{"native_group_norm.out", forward},
                                  {"native_group_norm_backward.out", backward}};

}  // namespace

const std::span<const OpEntry> kGroupNormOperators = kOperators;

}  // namespace ocltensor::opencl::norm
