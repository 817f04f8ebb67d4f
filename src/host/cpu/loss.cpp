// Losses and their gradients. Reduction 0 is none, 1 mean, 2 sum.
#include <cmath>
#include <numeric>

#include "call.h"

namespace ocltensor::cpu {
namespace {

// Writes per-element losses, reduced as asked.
void write_reduced(const CpuCall& call, const std::vector<double>& losses, int64_t reduction) {
  if (reduction == 0) return write(call.out(0), losses);
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  write(call.out(0),
        std::vector<double>{reduction == 1 ? sum / static_cast<double>(losses.size()) : sum});
}

std::vector<double> dense(const CpuCall& call, Arg a, const Dims& sizes) {
  return read<double>(View(call.args.tensor(a)).broadcast_to(sizes));
}

// ---- losses of a difference: f(input - target, parameter) and its derivative

struct DifferenceLoss {
  double (*value)(double d, double parameter);
  double (*slope)(double d, double parameter);
};

constexpr DifferenceLoss kMse = {[](double d, double) { return d * d; },
                                 [](double d, double) { return 2 * d; }};
constexpr DifferenceLoss kSmoothL1 = {[](double d, double beta) {
                                        const double z = std::fabs(d);
                                        return z < beta ? 0.5 * z * z / beta : z - 0.5 * beta;
                                      },
                                      [](double d, double beta) {
                                        return d <= -beta ? -1 : d >= beta ? 1 : d / beta;
                                      }};
constexpr DifferenceLoss kHuber = {[](double d, double delta) {
                                     const double z = std::fabs(d);
                                     return z <= delta ? 0.5 * z * z : delta * (z - 0.5 * delta);
                                   },
                                   [](double d, double delta) {
                                     return d < -delta ? -delta : d > delta ? delta : d;
                                   }};

void difference_loss(const CpuCall& call, const DifferenceLoss& loss, double parameter) {
  const Dims sizes =
      broadcast(call.args.tensor(Arg::self).sizes(), call.args.tensor(Arg::target).sizes());
  auto values = dense(call, Arg::self, sizes);
  const auto target = dense(call, Arg::target, sizes);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = loss.value(values[i] - target[i], parameter);
  write_reduced(call, values, call.args.integer(Arg::reduction));
}

void difference_backward(const CpuCall& call, const DifferenceLoss& loss, double parameter) {
  const Dims& sizes = call.specs[0].sizes;
  auto gradient = dense(call, Arg::grad_output, sizes);
  const auto self = dense(call, Arg::self, sizes);
  const auto target = dense(call, Arg::target, sizes);
  const double scale =
      call.args.integer(Arg::reduction) == 1 ? 1 / static_cast<double>(gradient.size()) : 1;
  for (size_t i = 0; i < gradient.size(); ++i)
    gradient[i] *= scale * loss.slope(self[i] - target[i], parameter);
  write(call.out(0), gradient);
}

void mse(const CpuCall& call) { difference_loss(call, kMse, 0); }
void mse_backward(const CpuCall& call) { difference_backward(call, kMse, 0); }
void smooth_l1(const CpuCall& call) { difference_loss(call, kSmoothL1, call.args.real(Arg::beta)); }
void smooth_l1_backward(const CpuCall& call) {
  difference_backward(call, kSmoothL1, call.args.real(Arg::beta));
}
void huber(const CpuCall& call) { difference_loss(call, kHuber, call.args.real(Arg::delta)); }
void huber_backward(const CpuCall& call) {
  difference_backward(call, kHuber, call.args.real(Arg::delta));
}

// ---- binary cross entropy; logarithms are cut at -100, the gradient's divisor at 1e-12, as in
// ATen

std::vector<double> weights(const CpuCall& call, const Dims& sizes) {
  if (call.args.is_none(Arg::weight))
    return std::vector<double>(static_cast<size_t>(numel(sizes)), 1);
  return dense(call, Arg::weight, sizes);
}

void bce(const CpuCall& call) {
  const Dims sizes = call.args.tensor(Arg::self).sizes();
  auto values = dense(call, Arg::self, sizes);
  const auto target = dense(call, Arg::target, sizes);
  const auto weight = weights(call, sizes);
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    for (const auto& [name, value] : {std::pair("input", x), std::pair("target", target[i])})
      check(value >= 0 && value <= 1,
            "binary_cross_entropy: all elements of {} should be between 0 and 1, got {}", name,
            value);
    values[i] = -weight[i] * (target[i] * std::max(-100.0, std::log(x)) +
                              (1 - target[i]) * std::max(-100.0, std::log1p(-x)));
  }
  write_reduced(call, values, call.args.integer(Arg::reduction));
}

void bce_backward(const CpuCall& call) {
  const Dims& sizes = call.specs[0].sizes;
  auto gradient = dense(call, Arg::grad_output, sizes);
  const auto self = dense(call, Arg::self, sizes);
  const auto target = dense(call, Arg::target, sizes);
  const auto weight = weights(call, sizes);
  const double scale =
      call.args.integer(Arg::reduction) == 1 ? 1 / static_cast<double>(gradient.size()) : 1;
  for (size_t i = 0; i < gradient.size(); ++i)
    gradient[i] *=
        scale * weight[i] * (self[i] - target[i]) / std::max((1 - self[i]) * self[i], 1e-12);
  write(call.out(0), gradient);
}

// ---- negative log likelihood: input [N, C, ...] as [N, C, P] with one target per (n, p)

struct Nll {
  int64_t samples, classes, points;
  std::vector<int64_t> target;
  std::vector<double> weight;
  int64_t ignored;

  explicit Nll(const CpuCall& call) {
    const View self = call.args.tensor(Arg::self);
    samples = self.ndim() == 1 ? 1 : self.sizes[0];
    classes = self.sizes[self.ndim() == 1 ? 0 : 1];
    points = 1;
    for (size_t d = 2; d < self.sizes.size(); ++d) points *= self.sizes[d];
    target = read<int64_t>(call.args.tensor(Arg::target));
    weight = weights(call, Dims{classes});
    ignored = call.args.integer(Arg::ignore_index);
    for (int64_t t : target)
      if (t != ignored && (t < 0 || t >= classes))
        fail(TB_E_INDEX, "{}: target {} is out of range: there are {} classes",
             call.args.schema().full_name(), t, classes);
  }
  // Calls f(position in target, position in input, weight) for the targets that count.
  template <typename F>
  void for_each(F&& f) const {
    for (int64_t n = 0; n < samples; ++n)
      for (int64_t p = 0; p < points; ++p) {
        const auto i = static_cast<size_t>(n * points + p);
        if (target[i] == ignored) continue;
        f(i, static_cast<size_t>((n * classes + target[i]) * points + p),
          weight[static_cast<size_t>(target[i])]);
      }
  }
};

void nll(const CpuCall& call) {
  const Nll loss(call);
  const auto self = read<double>(call.args.tensor(Arg::self));
  const int64_t reduction = call.args.integer(Arg::reduction);
  std::vector<double> losses(loss.target.size());
  double sum = 0, total = 0;
  loss.for_each([&](size_t i, size_t at, double weight) {
    losses[i] = -weight * self[at];
    sum += losses[i];
    total += weight;
  });
  const bool each = reduction == 0;
  if (each)
    write(call.out(0), losses);
  else
    write(call.out(0), std::vector<double>{reduction == 1 ? sum / total : sum});
  const bool single = call.args.tensor(Arg::self).ndim() == 1;
  write(call.out(1), std::vector<double>{each && !single ? 0 : total});
}

void nll_backward(const CpuCall& call) {
  const Nll loss(call);
  const auto gradient = read<double>(call.args.tensor(Arg::grad_output));
  const int64_t reduction = call.args.integer(Arg::reduction);
  const double divisor =
      reduction == 1 ? read<double>(call.args.tensor(Arg::total_weight)).at(0) : 1;
  std::vector<double> result(static_cast<size_t>(call.args.tensor(Arg::self).numel()));
  loss.for_each([&](size_t i, size_t at, double weight) {
    result[at] = -weight * gradient[reduction == 0 && gradient.size() > 1 ? i : 0] / divisor;
  });
  write(call.out(0), result);
}

// ---- several classes of each sample, listed up to the first negative number, against all others

void multilabel_margin(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const auto x = read<double>(self);
  const auto listed = read<int64_t>(View(call.args.tensor(Arg::target)));
  const size_t classes = self.sizes.empty() ? 1 : static_cast<size_t>(self.sizes.back());
  for (const int64_t t : listed)
    if (t < -1 || t >= static_cast<int64_t>(classes))
      fail(TB_E_INDEX, "{}: target {} is out of range: there are {} classes",
           call.args.schema().full_name(), t, classes);
  std::vector<double> losses, is_target(x.size());
  for (size_t at = 0; at < x.size(); at += classes) {
    size_t count = 0;
    while (count < classes && listed[at + count] >= 0) ++count;
    for (size_t k = 0; k < count; ++k) is_target[at + static_cast<size_t>(listed[at + k])] = 1;
    double sum = 0;
    for (size_t k = 0; k < count; ++k)
      for (size_t c = 0; c < classes; ++c) {
        const double excess = 1 - x[at + static_cast<size_t>(listed[at + k])] + x[at + c];
        if (is_target[at + c] == 0 && excess > 0) sum += excess;
      }
    losses.push_back(sum / static_cast<double>(classes));
  }
  write_reduced(call, losses, call.args.integer(Arg::reduction));
  write(call.out(1), is_target);
}

constexpr CpuOperator kOperators[] = {{"nll_loss_forward.output", nll},
                                      {"nll_loss_backward.grad_input", nll_backward},
                                      {"nll_loss2d_forward.output", nll},
                                      {"nll_loss2d_backward.grad_input", nll_backward},
                                      {"mse_loss.out", mse},
                                      {"mse_loss_backward.grad_input", mse_backward},
                                      {"binary_cross_entropy.out", bce},
                                      {"binary_cross_entropy_backward.grad_input", bce_backward},
                                      {"smooth_l1_loss.out", smooth_l1},
                                      {"smooth_l1_loss_backward.grad_input", smooth_l1_backward},
                                      {"huber_loss.out", huber},
                                      {"huber_loss_backward.out", huber_backward},
                                      {"multilabel_margin_loss_forward.output", multilabel_margin}};

}  // namespace

std::span<const CpuOperator> loss_operators() {
  static const auto all = joined({kOperators, ctc_operators()});
  return all;
}

}  // namespace ocltensor::cpu
