// Batch normalisation in the steps of nn.SyncBatchNorm: statistics of one process, of all processes
// together, and what follows from them; out forms of batch normalisation. As in ATen's kernels for
// CUDA, statistics of 16-bit inputs are float32. The gradient of RMS normalisation.
#include "composite.h"
#include "operators/operator.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

bool given(const MaybeTensor& t) { return t.has_value() && t->defined(); }

Tensor wide(const Tensor& t) { return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat); }

// All dimensions but that of the channels.
std::vector<int64_t> but_channels(const Tensor& input) {
  TORCH_CHECK(input.dim() >= 2, "batch normalisation expects an input of size [N, C, ...], got ",
              input.sizes());
  std::vector<int64_t> dims{0};
  for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
  return dims;
}

// A number per channel, in the shape that broadcasts over the input, in the type of statistics.
Tensor over(const Tensor& input, const Tensor& per_channel) {
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = input.size(1);
  return wide(per_channel).view(shape);
}

// running = (1 - momentum) running + momentum value
void move_towards(const MaybeTensor& running, const Tensor& value, double momentum) {
  if (given(running)) running->lerp_(value.to(running->scalar_type()), momentum);
}

Two stats(const Tensor& input, double eps) {
  const auto [var, mean] = at::var_mean(wide(input), but_channels(input), 0);
  return {mean, var.add(eps).rsqrt_()};
}

Tensor elemt(const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
             const Tensor& mean, const Tensor& invstd, double) {
  Tensor scale = over(input, invstd);
  if (given(weight)) scale = scale * over(input, *weight);
  const Tensor centred = wide(input) - over(input, mean);
  const Tensor result =
      given(bias) ? at::addcmul(over(input, *bias), centred, scale) : centred * scale;
  return result.to(input.scalar_type()).contiguous(input.suggest_memory_format());
}
Tensor& elemt_out(const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                  const Tensor& mean, const Tensor& invstd, double eps, Tensor& out) {
  return deliver(out, elemt(input, weight, bias, mean, invstd, eps));
}

// Means and variances of parts, [parts, C], become those of the whole; `counts` [parts] says how
// many elements each part has. Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm
// for computing sample variances", 1979, for all parts at once.
Two gather_with_counts(const Tensor&, const Tensor& means, const Tensor& invstds,
                       const MaybeTensor& running_mean, const MaybeTensor& running_var,
                       double momentum, double eps, const Tensor& counts) {
  const Tensor count = counts.to(means.scalar_type()).view({-1, 1});
  const Tensor total = count.sum();
  const Tensor mean = means.mul(count).sum(0).div_(total);
  const Tensor vars = invstds.pow(-2).sub_(eps);
  const Tensor squares = vars.add_((means - mean).square_()).mul_(count).sum(0);
  move_towards(running_mean, mean, momentum);
  if (given(running_var)) move_towards(running_var, squares / (total - 1), momentum);
  return {mean, squares.div(total).add_(eps).rsqrt_()};
}

Two gather(const Tensor& input, const Tensor& means, const Tensor& invstds,
           const MaybeTensor& running_mean, const MaybeTensor& running_var, double momentum,
           double eps, int64_t count) {
  const Tensor counts = at::full({means.size(0)}, count, means.options());
  return gather_with_counts(input, means, invstds, running_mean, running_var, momentum, eps,
                            counts);
}

// Returns mean and variance; the running variance is that of a sample.
Two update_stats(const Tensor& input, const MaybeTensor& running_mean,
                 const MaybeTensor& running_var, double momentum) {
  const auto [var, mean] = at::var_mean(wide(input), but_channels(input), 0);
  const double n = static_cast<double>(input.numel() / std::max<int64_t>(1, input.size(1)));
  move_towards(running_mean, mean, momentum);
  if (given(running_var)) move_towards(running_var, var * (n / (n - 1)), momentum);
  return {mean, var};
}

// Sums over this process's elements: of the gradient, and of its product with the distance from
// the mean; gradients of weight and bias.
Four backward_reduce(const Tensor& grad, const Tensor& input, const Tensor& mean,
                     const Tensor& invstd, const MaybeTensor& weight, bool input_g, bool weight_g,
                     bool bias_g) {
  const auto dims = but_channels(input);
  const Tensor dy = wide(grad);
  const Tensor sum = dy.sum(dims);
  const Tensor product = dy.mul(wide(input) - over(input, mean)).sum(dims);
  const auto type = given(weight) ? weight->scalar_type() : sum.scalar_type();
  return {input_g ? sum : Tensor(), input_g ? product : Tensor(),
          weight_g ? (product * wide(invstd)).to(type) : Tensor(),
          bias_g ? sum.to(type, false, true) : Tensor()};
}

Tensor backward_elemt(const Tensor& grad, const Tensor& input, const Tensor& mean,
                      const Tensor& invstd, const MaybeTensor& weight, const Tensor& sum,
                      const Tensor& product, const Tensor& counts) {
  const Tensor total = counts.sum().to(wide(mean).scalar_type());
  const Tensor inverse = wide(invstd);
  Tensor scale = inverse;
  if (given(weight)) scale = scale * wide(*weight);
  const Tensor slope = wide(product) / total * inverse.square();
  const Tensor centred = wide(input) - over(input, mean);
  Tensor result = wide(grad) - over(input, wide(sum) / total);
  result = at::addcmul(result, centred, over(input, slope), -1).mul_(over(input, scale));
  return result.to(input.scalar_type()).contiguous(input.suggest_memory_format());
}

using ThreeOuts = std::tuple<Tensor&, Tensor&, Tensor&>;
ThreeOuts deliver_all(const Three& results, Tensor& out, Tensor& mean, Tensor& invstd) {
  deliver(out, std::get<0>(results));
  deliver(mean, std::get<1>(results));
  deliver(invstd, std::get<2>(results));
  return {out, mean, invstd};
}

ThreeOuts legit_out(const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                    Tensor& running_mean, Tensor& running_var, bool training, double momentum,
                    double eps, Tensor& out, Tensor& mean, Tensor& invstd) {
  return deliver_all(at::_native_batch_norm_legit(input, weight, bias, running_mean, running_var,
                                                  training, momentum, eps),
                     out, mean, invstd);
}
ThreeOuts legit_no_stats_out(const Tensor& input, const MaybeTensor& weight,
                             const MaybeTensor& bias, bool training, double momentum, double eps,
                             Tensor& out, Tensor& mean, Tensor& invstd) {
  return deliver_all(at::_native_batch_norm_legit(input, weight, bias, training, momentum, eps),
                     out, mean, invstd);
}
std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> with_update_out(
    const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias, Tensor& running_mean,
    Tensor& running_var, double momentum, double eps, Tensor& out, Tensor& mean, Tensor& invstd,
    Tensor& reserve) {
  const auto [result, save_mean, save_invstd, memory] =
      at::_batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps);
  deliver_all({result, save_mean, save_invstd}, out, mean, invstd);
  deliver(reserve, memory);
  return {out, mean, invstd, reserve};
}

// ---- the gradient of RMS normalisation, for which ATen has no CPU kernel to fall back to
Two rms_norm_backward_composed(const Tensor& grad, const Tensor& input, int64_t normalized,
                               const Tensor& rstd, const MaybeTensor& weight,
                               std::array<bool, 2> wanted) {
  std::vector<int64_t> own, others;
  for (int64_t d = 0; d < input.dim(); ++d)
    (d < input.dim() - normalized ? others : own).push_back(d);
  const Tensor g = wide(grad), scale = wide(rstd), x = wide(input) * scale;
  Two result;
  if (wanted[0]) {
    const Tensor slope = given(weight) ? g * wide(*weight) : g;
    std::get<0>(result) =
        ((slope - x * (slope * x).mean(own, true)) * scale).to(input.scalar_type());
  }
  if (wanted[1] && given(weight)) {
    const Tensor each = g * x;
    std::get<1>(result) = (others.empty() ? each : each.sum(others)).to(weight->scalar_type());
  }
  return result;
}

Two rms_norm_backward(const Tensor& grad, const Tensor& input, at::IntArrayRef normalized,
                      const Tensor& rstd, const MaybeTensor& weight, std::array<bool, 2> wanted) {
  static PluginOperator& op = *new PluginOperator("_fused_rms_norm_backward.out");
  std::array<Tensor, 2> outs;
  if (!try_plugin(op, outs, grad, input, normalized, rstd, weight, wanted))
    return rms_norm_backward_composed(grad, input, static_cast<int64_t>(normalized.size()), rstd,
                                      weight, wanted);
  for (size_t i = 0; i < 2; ++i)
    if (!wanted[i]) outs[i] = Tensor();
  return {outs[0], outs[1]};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_rms_norm_backward", TORCH_FN(rms_norm_backward));
  m.impl("batch_norm_stats", TORCH_FN(stats));
  m.impl("batch_norm_elemt", TORCH_FN(elemt));
  m.impl("batch_norm_elemt.out", TORCH_FN(elemt_out));
  m.impl("batch_norm_gather_stats", TORCH_FN(gather));
  m.impl("batch_norm_gather_stats_with_counts", TORCH_FN(gather_with_counts));
  m.impl("batch_norm_update_stats", TORCH_FN(update_stats));
  m.impl("batch_norm_backward_reduce", TORCH_FN(backward_reduce));
  m.impl("batch_norm_backward_elemt", TORCH_FN(backward_elemt));
  m.impl("_native_batch_norm_legit.out", TORCH_FN(legit_out));
  m.impl("_native_batch_norm_legit.no_stats_out", TORCH_FN(legit_no_stats_out));
  m.impl("_batch_norm_with_update.out", TORCH_FN(with_update_out));
}

}  // namespace torch_ocl
