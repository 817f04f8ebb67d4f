// Random numbers by rejection: _standard_gamma, poisson, binomial; base/philox.h says which words
// an element reads. The candidates are those of every backend; whether one is accepted is computed
// from the definition of the probability.
#include <array>
#include <cmath>

#include "base/philox.h"
#include "call.h"
#include "generator.h"
#include "special.h"

namespace ocltensor::cpu {
namespace {

constexpr uint32_t kAttempts = 100;

// The four numbers in (0, 1] of each attempt to draw an element.
class Attempts {
 public:
  Attempts(Generator::State state, int64_t element, bool wide)
      : seed_(state.seed), counter_(state.offset + static_cast<uint64_t>(element)), wide_(wide) {}
  std::array<double, 4> numbers(uint32_t attempt) const {
    std::array<uint32_t, 8> w{};
    if (!wide_) {
      philox_attempt(seed_, counter_, attempt, w.data());
      return {unit(w[0]), unit(w[1]), unit(w[2]), unit(w[3])};
    }
    philox_attempt(seed_, counter_, 2 * attempt, w.data());
    philox_attempt(seed_, counter_, 2 * attempt + 1, w.data() + 4);
    return {unit(w[0], w[1]), unit(w[2], w[3]), unit(w[4], w[5]), unit(w[6], w[7])};
  }

 private:
  static double unit(uint32_t word) { return (word + 0.5) * 0x1p-32; }
  static double unit(uint32_t low, uint32_t high) {
    const uint64_t word = low | static_cast<uint64_t>(high) << 32;
    return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53;
  }
  uint64_t seed_, counter_;
  bool wide_;
};

// G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000.
double draw_gamma(double alpha, const Attempts& attempts) {
  if (!(alpha > 0)) return alpha == 0 ? 0 : kNan;
  if (std::isinf(alpha)) return alpha;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  const double boost = alpha < 1 ? std::exp(std::log(attempts.numbers(0)[3]) / alpha) : 1;
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    const auto u = attempts.numbers(attempt);
    const double x = std::sqrt(-2 * std::log(u[0])) * std::cos(2 * kPi * u[1]);
    const double y = 1 + c * x;
    const double v = y * y * y;
    if (y <= 0) continue;
    if (std::log(u[2]) < x * x / 2 + d * (1 - v + std::log(v))) return d * boost * v;
  }
  return d * boost;
}

// The first k at which the sum of probabilities reaches u, from the probability of 0 and the ratio
// of those of k + 1 and k.
template <typename Ratio>
double invert(double probability, double u, double mean, double unit, const Ratio& ratio) {
  double k = 0;
  while (u > probability && (k < mean || probability > unit * 1e-3)) {
    u -= probability;
    probability *= ratio(k);
    k += 1;
  }
  return k;
}

// W. Hoermann, "The transformed rejection method for generating Poisson random variables", 1993.
double draw_poisson(double rate, const Attempts& attempts, double unit) {
  if (rate == 0 || std::isinf(rate)) return rate;
  if (rate < 10)
    return invert(std::exp(-rate), attempts.numbers(0)[0], rate, unit,
                  [&](double k) { return rate / (k + 1); });
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = 0.02483 * b - 0.059;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    const auto u = attempts.numbers(attempt);
    const double side = u[0] - 0.5;
    const double from_end = 0.5 - std::fabs(side);
    const double k = std::floor((2 * a / from_end + b) * side + rate + 0.43);
    if (from_end >= 0.07 && u[1] <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (!(k >= 0) || (from_end < 0.013 && u[1] > from_end)) continue;
    const double height = u[1] * inverse_alpha / (a / (from_end * from_end) + b);
    if (std::log(height) <= k * std::log(rate) - rate - special::lgamma(k + 1)) return k;
  }
  return std::floor(rate);
}

// W. Hoermann, "The generation of binomial random variates", 1993; p <= 1/2.
double draw_lower(double n, double p, const Attempts& attempts, double unit) {
  if (n * p < 10)
    return invert(std::exp(n * std::log1p(-p)), attempts.numbers(0)[0], n * p, unit,
                  [&](double k) { return (n - k) / (k + 1) * (p / (1 - p)); });
  const auto log_probability = [&](double k) {
    return k * std::log(p / (1 - p)) - special::lgamma(k + 1) - special::lgamma(n - k + 1);
  };
  const double deviation = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = 0.0248 * b + 0.01 * p - 0.0873;
  const double mode = std::floor((n + 1) * p);
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    const auto u = attempts.numbers(attempt);
    const double side = u[0] - 0.5;
    const double from_end = 0.5 - std::fabs(side);
    const double k = std::floor((2 * a / from_end + b) * side + n * p + 0.5);
    if (from_end >= 0.07 && u[1] <= 0.92 - 4.2 / b) return k;
    if (!(k >= 0 && k <= n)) continue;
    const double height = u[1] * (2.83 + 5.1 / b) * deviation / (a / (from_end * from_end) + b);
    if (std::log(height) <= log_probability(k) - log_probability(mode)) return k;
  }
  return mode;
}

double draw_binomial(double count, double p, const Attempts& attempts, double unit) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1 || std::isinf(count)) return count;
  if (std::isnan(count) || std::isnan(p)) return kNan;
  const double n = std::floor(count);
  return p <= 0.5 ? draw_lower(n, p, attempts, unit) : n - draw_lower(n, 1 - p, attempts, unit);
}

// Draws every element of the output, in row-major order.
template <typename Draw>
void draw_each(const CpuCall& call, const Draw& draw) {
  const tb_generator generator =
      call.args.has(Arg::generator) ? call.args.generator(Arg::generator) : nullptr;
  const View out = call.out(0);
  const Generator::State state =
      generator_of(generator).take(4 * static_cast<uint64_t>(out.numel()));
  std::vector<double> values(static_cast<size_t>(out.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = draw(i, Attempts(state, static_cast<int64_t>(i), out.type == DType::Float64));
  write(out, values);
}

// What a random number of the type is a multiple of.
double unit_of(DType type) { return type == DType::Float64 ? 0x1p-53 : 0x1p-24; }

void standard_gamma(const CpuCall& call) {
  const auto alphas = read<double>(call.args.tensor(Arg::self));
  const DType type = call.out(0).type;
  const double least = type == DType::Float16   ? 0x1p-14
                       : type == DType::Float64 ? 0x1p-1022
                                                : 0x1p-126;
  draw_each(call, [&](size_t i, const Attempts& attempts) {
    const double value = draw_gamma(alphas[i], attempts);
    return value < least ? least : value;
  });
}

void poisson(const CpuCall& call) {
  const auto rates = read<double>(call.args.tensor(Arg::self));
  for (const double rate : rates)
    check(rate >= 0, "poisson: a rate is negative or not a number: {}", rate);
  const double unit = unit_of(call.out(0).type);
  draw_each(call, [&](size_t i, const Attempts& attempts) {
    return draw_poisson(rates[i], attempts, unit);
  });
}

void binomial(const CpuCall& call) {
  const Dims& sizes = call.specs[0].sizes;
  const auto counts = read<double>(View(call.args.tensor(Arg::count)).broadcast_to(sizes));
  const auto probs = read<double>(View(call.args.tensor(Arg::prob)).broadcast_to(sizes));
  const double unit = unit_of(call.out(0).type);
  draw_each(call, [&](size_t i, const Attempts& attempts) {
    return draw_binomial(counts[i], probs[i], attempts, unit);
  });
}

constexpr CpuOperator kOperators[] = {
    {"_standard_gamma.out", standard_gamma}, {"poisson.out", poisson}, {"binomial.out", binomial}};

}  // namespace

std::span<const CpuOperator> rejection_operators() { return kOperators; }

}  // namespace ocltensor::cpu
