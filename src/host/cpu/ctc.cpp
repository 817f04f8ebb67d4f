// Connectionist temporal classification (Graves et al., 2006): the sums over all paths, in
// logarithms.
#include <cmath>
#include <limits>

#include "call.h"

namespace ocltensor::cpu {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  const double largest = std::max(a, b);
  if (largest == kNever) return kNever;
  return largest + std::log1p(std::exp(std::min(a, b) - largest));
}

class Ctc {
 public:
  explicit Ctc(const CpuCall& call)
      : probs(read<double>(call.args.tensor(Arg::log_probs))),
        time(call.args.tensor(Arg::log_probs).size(0)),
        samples(call.args.tensor(Arg::log_probs).size(1)),
        classes(call.args.tensor(Arg::log_probs).size(2)),
        inputs(call.args.ints(Arg::input_lengths)) {
    const TensorView targets = call.args.tensor(Arg::targets);
    const auto values = read<int64_t>(targets);
    int64_t start = 0;
    for (size_t n = 0; n < inputs.size(); ++n) {
      const int64_t length = call.args.ints(Arg::target_lengths)[n];
      if (targets.ndim() == 2) start = static_cast<int64_t>(n) * targets.size(1);
      auto& row =
          labels.emplace_back(static_cast<size_t>(2 * length + 1), call.args.integer(Arg::blank));
      for (int64_t k = 0; k < length; ++k)
        row[static_cast<size_t>(2 * k + 1)] = checked(call, values[static_cast<size_t>(start + k)]);
      if (targets.ndim() == 1) start += length;
      places = std::max(places, 2 * length + 1);
    }
  }
  int64_t checked(const CpuCall& call, int64_t label) const {
    if (label < 0 || label >= classes)
      fail(TB_E_INDEX, "{}: target {} is out of range: there are {} classes",
           call.args.schema().full_name(), label, classes);
    return label;
  }
  size_t prob_at(int64_t t, size_t n, int64_t c) const {
    return (static_cast<size_t>(t * samples) + n) * static_cast<size_t>(classes) +
           static_cast<size_t>(c);
  }
  double prob(int64_t t, size_t n, size_t place) const {
    return probs[prob_at(t, n, labels[n][place])];
  }
  // True if a path may go from `place` to `place + 2`.
  bool skips(size_t n, size_t place) const {
    return place % 2 == 1 && place + 2 < labels[n].size() &&
           labels[n][place] != labels[n][place + 2];
  }
  size_t row(size_t n, int64_t t) const {
    return (n * static_cast<size_t>(time) + static_cast<size_t>(t)) * static_cast<size_t>(places);
  }

  std::vector<double> probs;
  int64_t time, samples, classes, places = 1;
  std::span<const int64_t> inputs;
  std::vector<std::vector<int64_t>> labels;  // of each sample, with the blanks
};

void forward(const CpuCall& call) {
  const Ctc ctc(call);
  std::vector<double> alphas(static_cast<size_t>(numel(call.specs[1].sizes)), kNever), losses;
  for (size_t n = 0; n < ctc.labels.size(); ++n) {
    const size_t own = ctc.labels[n].size();
    for (int64_t t = 0; t < ctc.inputs[n]; ++t)
      for (size_t s = 0; s < own; ++s) {
        double* to = &alphas[ctc.row(n, t) + s];
        const double* from = to - ctc.places;
        double sum = s < 2 ? 0 : kNever;
        if (t > 0) {
          sum = from[0];
          if (s > 0) sum = log_add(sum, from[-1]);
          if (s > 1 && ctc.skips(n, s - 2)) sum = log_add(sum, from[-2]);
        }
        *to = sum == kNever ? kNever : sum + ctc.prob(t, n, s);
      }
    double sum = own == 1 ? 0 : kNever;
    if (ctc.inputs[n] > 0) {
      const double* last = &alphas[ctc.row(n, ctc.inputs[n] - 1) + own - 1];
      sum = own > 1 ? log_add(last[0], last[-1]) : last[0];
    }
    losses.push_back(-sum);
  }
  if (call.wants(0)) write(call.out(0), losses);
  if (call.wants(1)) write(call.out(1), alphas);
}

void backward(const CpuCall& call) {
  const Ctc ctc(call);
  const auto grad = read<double>(call.args.tensor(Arg::grad)),
             loss = read<double>(call.args.tensor(Arg::neg_log_likelihood)),
             alphas = read<double>(call.args.tensor(Arg::log_alpha));
  std::vector<double> result(ctc.probs.size());
  for (size_t n = 0; n < ctc.labels.size(); ++n) {
    if (call.args.boolean(Arg::zero_infinity) && loss[n] == -kNever) continue;
    const size_t own = ctc.labels[n].size();
    std::vector<double> betas(own, kNever);
    for (int64_t t = ctc.inputs[n] - 1; t >= 0; --t) {
      std::vector<double> next(own, kNever), shares(static_cast<size_t>(ctc.classes), kNever);
      for (size_t s = 0; s < own; ++s) {
        double sum = t + 1 == ctc.inputs[n] && s + 2 >= own ? 0 : kNever;
        if (t + 1 < ctc.inputs[n]) {
          sum = betas[s];
          if (s + 1 < own) sum = log_add(sum, betas[s + 1]);
          if (ctc.skips(n, s)) sum = log_add(sum, betas[s + 2]);
        }
        next[s] = sum == kNever ? kNever : sum + ctc.prob(t, n, s);
        const int64_t c = ctc.labels[n][s];
        double& share = shares[static_cast<size_t>(c)];
        share = log_add(share, next[s] + alphas[ctc.row(n, t) + s]);
      }
      betas = std::move(next);
      for (int64_t c = 0; c < ctc.classes; ++c) {
        const size_t at = ctc.prob_at(t, n, c);
        const double p = ctc.probs[at];
        result[at] =
            (std::exp(p) - std::exp(shares[static_cast<size_t>(c)] + loss[n] - p)) * grad[n];
      }
    }
  }
  if (call.wants(0)) write(call.out(0), result);
}

constexpr CpuOperator kOperators[] = {{"_ctc_loss.out", forward},
                                      {"_ctc_loss_backward.out", backward}};

}  // namespace

std::span<const CpuOperator> ctc_operators() { return kOperators; }

}  // namespace ocltensor::cpu
