// Batch, layer and group normalisation. All three normalise sets of elements of a dense
// [outer, middle, inner] array and differ only in which elements form a set, and which share a
// weight.
#include <cmath>

#include "call.h"

namespace ocltensor::cpu {
namespace {

using Values = std::vector<double>;

// Element i belongs to statistics set set(i) and to weight channel(i).
struct Grouping {
  int64_t sets, set_size;  // set_size: elements per set
  int64_t channels;
  int64_t set_inner, set_period;          // set(i) = i / set_inner % set_period
  int64_t channel_inner, channel_period;  // channel(i) likewise
  size_t set(size_t i) const {
    return i / static_cast<size_t>(set_inner) % static_cast<size_t>(set_period);
  }
  size_t channel(size_t i) const {
    return i / static_cast<size_t>(channel_inner) % static_cast<size_t>(channel_period);
  }
};

int64_t positive(int64_t v) { return std::max<int64_t>(v, 1); }

Grouping batch_grouping(std::span<const int64_t> sizes) {
  const int64_t channels = sizes[1];
  const int64_t inner = positive(numel(sizes.subspan(2)));
  return {channels,           channels == 0 ? 0 : numel(sizes) / channels,
          channels,           inner,
          positive(channels), inner,
          positive(channels)};
}
Grouping layer_grouping(std::span<const int64_t> sizes, std::span<const int64_t> normalized) {
  const int64_t inner = numel(normalized);
  const int64_t outer = numel(sizes.first(sizes.size() - normalized.size()));
  return {outer, inner, inner, positive(inner), positive(outer), 1, positive(inner)};
}
Grouping group_grouping(const Args& args) {
  const int64_t n = args.integer(Arg::N), channels = args.integer(Arg::C);
  const int64_t area = args.integer(Arg::HxW), groups = args.integer(Arg::group);
  const int64_t inner = channels / groups * area;
  return {n * groups,           inner,          channels,          positive(inner),
          positive(n * groups), positive(area), positive(channels)};
}

struct Statistics {
  Values mean, variance;  // biased
};

Statistics statistics(const Grouping& g, const Values& x) {
  const auto sets = static_cast<size_t>(g.sets);
  Statistics s{Values(sets), Values(sets)};
  const auto n = static_cast<double>(g.set_size);
  // Relative to an element of the set, so that equal elements have a variance of exactly 0.
  Values pivot(sets);
  for (size_t i = x.size(); i-- > 0;) pivot[g.set(i)] = std::isfinite(x[i]) ? x[i] : 0;
  std::vector<long double> offset(sets), squares(sets);
  for (size_t i = 0; i < x.size(); ++i)
    offset[g.set(i)] += static_cast<long double>(x[i]) - pivot[g.set(i)];
  for (long double& v : offset) v /= n;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double d = static_cast<long double>(x[i]) - pivot[g.set(i)] - offset[g.set(i)];
    squares[g.set(i)] += d * d;
  }
  for (size_t i = 0; i < sets; ++i) {
    s.mean[i] = static_cast<double>(pivot[i] + offset[i]);
    s.variance[i] = static_cast<double>(squares[i] / n);
  }
  return s;
}

Values optional_values(const CpuCall& call, Arg a, int64_t count, double fallback) {
  const auto t = call.args.optional_tensor(a);
  return t ? read<double>(View(*t)) : Values(static_cast<size_t>(count), fallback);
}

Values inverse_root(const Values& variance, double eps) {
  Values result = variance;
  for (double& v : result) v = 1 / std::sqrt(v + eps);
  return result;
}

Values normalize(const Grouping& g, Values x, const Values& mean, const Values& scale,
                 const Values& weight, const Values& bias) {
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (x[i] - mean[g.set(i)]) * scale[g.set(i)] * weight[g.channel(i)] + bias[g.channel(i)];
  return x;
}

// Gradients of y = (x - mean) scale w + b. Where the statistics came from x itself:
// dx = scale (w g - avg(w g) - xhat avg(w g xhat)); where they are constants: dx = scale w g.
void backward(const CpuCall& call, const Grouping& g, const Values& mean, const Values& scale,
              const Values& weight, bool constant) {
  const auto gradient = read<double>(call.args.tensor(Arg::grad_out));
  const auto x = read<double>(call.args.tensor(Arg::input));
  Values sum(static_cast<size_t>(g.sets)), dot(static_cast<size_t>(g.sets));
  Values d_weight(static_cast<size_t>(g.channels)), d_bias(static_cast<size_t>(g.channels));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t s = g.set(i), c = g.channel(i);
    const double normalized = (x[i] - mean[s]) * scale[s];
    sum[s] += gradient[i] * weight[c];
    dot[s] += gradient[i] * weight[c] * normalized;
    d_weight[c] += gradient[i] * normalized;
    d_bias[c] += gradient[i];
  }
  if (call.wants(0)) {
    Values result(x.size());
    const double share = constant ? 0 : 1 / static_cast<double>(g.set_size);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t s = g.set(i);
      const double normalized = (x[i] - mean[s]) * scale[s];
      result[i] = scale[s] * (gradient[i] * weight[g.channel(i)] - share * sum[s] -
                              share * normalized * dot[s]);
    }
    write(call.out(0), result);
  }
  if (call.wants(1)) write(call.out(1), d_weight);
  if (call.wants(2)) write(call.out(2), d_bias);
}

void update_running(const CpuCall& call, Arg a, const Values& batch) {
  const auto running = call.args.optional_tensor(a);
  if (!running) return;
  const double momentum = call.args.real(Arg::momentum);
  auto values = read<double>(View(*running));
  for (size_t c = 0; c < values.size(); ++c)
    values[c] = (1 - momentum) * values[c] + momentum * batch[c];
  write(View(*running), values);
}

void batch_norm(const CpuCall& call) {
  const View input = call.args.tensor(Arg::input);
  const Grouping g = batch_grouping(input.sizes);
  const auto x = read<double>(input);
  const bool training = call.args.boolean(Arg::training);
  const double eps = call.args.real(Arg::eps);
  const Statistics s = training ? statistics(g, x)
                                : Statistics{optional_values(call, Arg::running_mean, g.sets, 0),
                                             optional_values(call, Arg::running_var, g.sets, 1)};
  const Values scale = inverse_root(s.variance, eps);
  const Values y = normalize(g, x, s.mean, scale, optional_values(call, Arg::weight, g.channels, 1),
                             optional_values(call, Arg::bias, g.channels, 0));
  write(call.out(0), y);
  if (!training) return;
  write(call.out(1), s.mean);
  write(call.out(2), scale);
  Values unbiased = s.variance;
  const auto n = static_cast<double>(g.set_size);
  for (double& v : unbiased) v *= n / (n - 1);
  update_running(call, Arg::running_mean, s.mean);
  update_running(call, Arg::running_var, unbiased);
}

void batch_norm_backward(const CpuCall& call) {
  const Grouping g = batch_grouping(call.args.tensor(Arg::input).sizes());
  const bool training = call.args.boolean(Arg::train);
  const Values mean =
      optional_values(call, training ? Arg::save_mean : Arg::running_mean, g.sets, 0);
  const Values scale = training ? optional_values(call, Arg::save_invstd, g.sets, 1)
                                : inverse_root(optional_values(call, Arg::running_var, g.sets, 1),
                                               call.args.real(Arg::eps));
  backward(call, g, mean, scale, optional_values(call, Arg::weight, g.channels, 1), !training);
}

void forward(const CpuCall& call, const Grouping& g) {
  const auto x = read<double>(call.args.tensor(Arg::input));
  const Statistics s = statistics(g, x);
  const Values scale = inverse_root(s.variance, call.args.real(Arg::eps));
  write(call.out(0),
        normalize(g, x, s.mean, scale, optional_values(call, Arg::weight, g.channels, 1),
                  optional_values(call, Arg::bias, g.channels, 0)));
  write(call.out(1), s.mean);
  write(call.out(2), scale);
}

void layer_norm(const CpuCall& call) {
  forward(call, layer_grouping(call.args.tensor(Arg::input).sizes(),
                               call.args.ints(Arg::normalized_shape)));
}
void layer_norm_backward(const CpuCall& call) {
  const Grouping g =
      layer_grouping(call.args.tensor(Arg::input).sizes(), call.args.ints(Arg::normalized_shape));
  backward(call, g, read<double>(call.args.tensor(Arg::mean)),
           read<double>(call.args.tensor(Arg::rstd)),
           optional_values(call, Arg::weight, g.channels, 1), false);
}
// Layer normalisation around 0: dx = scale (w g - xhat avg(w g xhat)).
void rms_norm(const CpuCall& call) {
  const View input = call.args.tensor(Arg::input);
  const Grouping g = layer_grouping(input.sizes, call.args.ints(Arg::normalized_shape));
  const auto x = read<double>(input);
  Values squares(static_cast<size_t>(g.sets));
  for (size_t i = 0; i < x.size(); ++i)
    squares[g.set(i)] += x[i] * x[i] / static_cast<double>(g.set_size);
  const double least = input.type == DType::Float64 ? 0x1p-52 : 0x1p-23;
  const Values scale = inverse_root(squares, call.args.optional_real(Arg::eps).value_or(least));
  const Values zeros(static_cast<size_t>(std::max(g.sets, g.channels)));
  write(call.out(0),
        normalize(g, x, zeros, scale, optional_values(call, Arg::weight, g.channels, 1), zeros));
  write(call.out(1), scale);
}
void rms_norm_backward(const CpuCall& call) {
  const Grouping g =
      layer_grouping(call.args.tensor(Arg::input).sizes(), call.args.ints(Arg::normalized_shape));
  const auto gradient = read<double>(call.args.tensor(Arg::grad_out));
  const auto x = read<double>(call.args.tensor(Arg::input));
  const auto scale = read<double>(call.args.tensor(Arg::rstd));
  const Values weight = optional_values(call, Arg::weight, g.channels, 1);
  Values dot(static_cast<size_t>(g.sets)), d_weight(static_cast<size_t>(g.channels));
  for (size_t i = 0; i < x.size(); ++i) {
    const double normalized = x[i] * scale[g.set(i)];
    dot[g.set(i)] += gradient[i] * weight[g.channel(i)] * normalized;
    d_weight[g.channel(i)] += gradient[i] * normalized;
  }
  Values result(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t s = g.set(i);
    result[i] = scale[s] * (gradient[i] * weight[g.channel(i)] -
                            x[i] * scale[s] * dot[s] / static_cast<double>(g.set_size));
  }
  if (call.wants(0)) write(call.out(0), result);
  if (call.wants(1)) write(call.out(1), d_weight);
}
void group_norm(const CpuCall& call) { forward(call, group_grouping(call.args)); }
void group_norm_backward(const CpuCall& call) {
  const Grouping g = group_grouping(call.args);
  backward(call, g, read<double>(call.args.tensor(Arg::mean)),
           read<double>(call.args.tensor(Arg::rstd)),
           optional_values(call, Arg::weight, g.channels, 1), false);
}

constexpr CpuOperator kOperators[] = {
    {"native_batch_norm.out", batch_norm}, {"native_batch_norm_backward.out", batch_norm_backward},
    {"native_layer_norm.out", layer_norm}, {"native_layer_norm_backward.out", layer_norm_backward},
    {"_fused_rms_norm.out", rms_norm},     {"_fused_rms_norm_backward.out", rms_norm_backward},
    {"native_group_norm.out", group_norm}, {"native_group_norm_backward.out", group_norm_backward},
};

}  // namespace

std::span<const CpuOperator> norm_operators() { return kOperators; }

}  // namespace ocltensor::cpu
