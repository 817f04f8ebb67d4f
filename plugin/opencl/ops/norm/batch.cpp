// native_batch_norm and its backward. Statistics of 16-bit types are kept in float32.
#include <optional>

#include "call/division.h"
#include "norm.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"
#include "planes.h"

namespace ocltensor::opencl::norm {
namespace {

// Of a tensor in channels_last every position is a sample of its own: planes have one element.
Planes planes_of(TensorView input, bool channels_last) {
  const int64_t channels = input.size(1);
  int64_t samples = input.size(0);
  int64_t inner = 1;
  for (int64_t d = 2; d < input.ndim(); ++d) (channels_last ? samples : inner) *= input.size(d);
  return {samples, channels, inner, channels, 1};
}

// The tensor with its channels last: contiguous if it is in channels_last.
LocalTensor channels_behind(TensorView t) {
  Dims sizes{t.size(0)}, strides{t.strides()[0]};
  for (int64_t d = 2; d <= t.ndim(); ++d) {
    const int64_t from = d == t.ndim() ? 1 : d;
    sizes.push_back(t.size(from));
    strides.push_back(t.strides()[static_cast<size_t>(from)]);
  }
  return LocalTensor(t.address(), t.dtype(), sizes, strides);
}
bool is_channels_last(TensorView t) {
  return !t.is_contiguous() && channels_behind(t).view().is_contiguous();
}

// A tensor in the order of the planes (Contiguous or ContiguousOutput): itself where its format
// fits, else a copy.
template <typename Dense>
class Ordered {
 public:
  Ordered(const OpCall& call, TensorView t, bool channels_last)
      : turned_(channels_behind(t)), dense_(call, channels_last ? turned_.view() : t) {}
  TensorView view() const { return dense_.view(); }
  void finish() { dense_.finish(); }

 private:
  LocalTensor turned_;
  Dense dense_;
};
using Operand = Ordered<Contiguous>;
using Result = Ordered<ContiguousOutput>;

DType shared_type(const OpCall& call, const ChannelVector& mean, const ChannelVector& variance,
                  DType fallback) {
  if (mean.tensor.has_value() != variance.tensor.has_value() ||
      (mean.tensor && mean.tensor->dtype() != variance.tensor->dtype()))
    unsupported(TB_REASON_DTYPE, "{}: running_mean and running_var must both be given, in one type",
                call.name());
  return mean.tensor ? mean.tensor->dtype() : fallback;
}

void forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView input = call.args().tensor(Arg::input);
  const DType compute = compute_type(input.dtype());
  const auto [weight, bias] = affine_operands(call);
  const ChannelVector mean = channel_vector(call, Arg::running_mean);
  const ChannelVector variance = channel_vector(call, Arg::running_var);
  (void)shared_type(call, mean, variance, compute);
  const bool train = call.args().boolean(Arg::training);
  check(!train || call.out(1).dtype() == call.out(2).dtype(),
        "{}: saved statistics of different types", call.name());
  call.accept();
  const bool channels_last = is_channels_last(input);
  const Planes p = planes_of(input, channels_last);
  if (input.numel() == 0) {
    if (train)
      for (size_t i = 1; i < 3; ++i) copy::fill_tensor(call, call.out(i), 0);
    return;
  }
  const Operand in(call, input, channels_last);
  Result out(call, call.out(0), channels_last);
  planes_forward(call, {in.view(),
                        out.view(),
                        weight,
                        bias,
                        mean,
                        variance,
                        p,
                        train,
                        {call.args().real(Arg::momentum), call.args().real(Arg::eps)}});
  out.finish();
}

// A tensor in the compute type and contiguous: itself or a copy. Hosts may have saved it in another
// type.
class Converted {
 public:
  Converted(const OpCall& call, TensorView source, DType type) {
    if (source.dtype() == type && source.is_contiguous()) {
      local_.emplace(source.address(), type, Dims(source.sizes()));
      return;
    }
    memory_.emplace(call.scratch(static_cast<uint64_t>(source.numel() * size_of(type))));
    local_.emplace(memory_->address(), type, Dims(source.sizes()));
    copy_tensor(call, local_->view(), source);
  }
  TensorView view() const { return local_->view(); }

 private:
  std::optional<Scratch> memory_;  // empty if the tensor itself serves
  std::optional<LocalTensor> local_;
};

void backward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView grad = call.args().tensor(Arg::grad_out), input = call.args().tensor(Arg::input);
  const ChannelVector weight = channel_vector(call, Arg::weight);
  const ChannelVector mean = channel_vector(call, Arg::running_mean);
  const ChannelVector variance = channel_vector(call, Arg::running_var);
  const bool train = call.args().boolean(Arg::train);
  const auto mask = call.args().booleans(Arg::output_mask);
  check(!call.args().is_none(train ? Arg::save_mean : Arg::running_mean) &&
            !call.args().is_none(train ? Arg::save_invstd : Arg::running_var),
        "{}: {} statistics are needed", call.name(), train ? "the saved" : "running");
  check(Dims(grad.sizes()) == Dims(input.sizes()), "{}: grad_out has shape {}, input {}",
        call.name(), to_string(grad.sizes()), to_string(input.sizes()));
  const DType compute = compute_type(input.dtype());
  if (!train) (void)shared_type(call, mean, variance, compute);  // declines mixed types
  check(!mask[1] || !mask[2] || call.out(1).dtype() == call.out(2).dtype(),
        "{}: gradients of different types", call.name());
  if (weight.tensor)
    for (size_t i = 1; i < 3; ++i)
      check(!mask[i] || call.out(i).dtype() == weight.tensor->dtype(),
            "{}: output {} must have the weight's type", call.name(), i);
  call.accept();
  const bool channels_last = is_channels_last(input);
  const Planes p = planes_of(input, channels_last);
  const Operand dy(call, grad, channels_last), x(call, input, channels_last);
  std::optional<Result> dx;
  if (mask[0]) dx.emplace(call, call.out(0), channels_last);
  const TensorView out = dx ? dx->view() : x.view();
  const std::array<bool, 3> which{mask[0], mask[1], mask[2]};
  if (train) {
    const Converted m(call, call.args().tensor(Arg::save_mean), compute),
        r(call, call.args().tensor(Arg::save_invstd), compute);
    planes_backward(
        call, {dy.view(), x.view(), out, {m.view(), r.view(), 1, 1, {}}, weight, p, true, which});
  } else {
    const SavedStatistics saved{*mean.tensor, *variance.tensor, mean.stride(), variance.stride(),
                                call.args().real(Arg::eps)};
    planes_backward(call, {dy.view(), x.view(), out, saved, weight, p, false, which});
  }
  if (dx) dx->finish();
}

constexpr OpEntry kOperators[] = {{"native_batch_norm.out", forward},
                                  {"native_batch_norm_backward.out", backward}};

}  // namespace

const std::span<const OpEntry> kBatchNormOperators = kOperators;

std::span<const OpEntry> norm_operators() {
  static const auto& entries = *new auto([] {
    std::vector<OpEntry> list;
    for (const auto& part : {kBatchNormOperators, kGroupNormOperators, kLayerNormOperators})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }());
  return entries;
}

}  // namespace ocltensor::opencl::norm
