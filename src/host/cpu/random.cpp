// Random numbers: the distributions of base/philox.h.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/whole_numbers.h"
#include "call.h"
#include "draw.h"
#include "special.h"

namespace ocltensor::cpu {
namespace {

using Values = std::vector<double>;

tb_generator generator_named(const CpuCall& call) {
  return call.args.has(Arg::generator) ? call.args.generator(Arg::generator) : nullptr;
}

void check_real_output(const CpuCall& call) {
  check(is_floating(call.out(0).type), "{} needs a floating-point tensor, got {}",
        call.args.schema().full_name(), name(call.out(0).type));
}

// from + unit * (to - from), in float32 unless the type is float64, so that all backends round
// alike.
double scaled(double unit, double from, double to, DType type) {
  if (type == DType::Float64) {
    const double value = unit * (to - from) + from;
    return value >= to && to > from ? from : value;
  }
  const auto low = static_cast<float>(from);
  const float range = static_cast<float>(to) - low;
  const float value = static_cast<float>(unit) * range + low;
  const double result = rounded(value, type);
  return result >= rounded(static_cast<float>(to), type) && to > from ? rounded(low, type) : result;
}

void uniform(const CpuCall& call) {
  check_real_output(call);
  const View out = call.out(0);
  const double from = call.args.real(Arg::from);
  const double to = call.args.real(Arg::to);
  check(from <= to, "uniform: from must not be above to, got {} and {}", from, to);
  Values values = draw_uniform(generator_named(call), out.numel(), out.type);
  for (double& v : values) v = scaled(v, from, to, out.type);
  write(out, values);
}

// Box and Muller, "A note on the generation of random normal deviates", 1958.
void normal(const CpuCall& call) {
  check_real_output(call);
  const View out = call.out(0);
  const double mean = call.args.real(Arg::mean);
  const double deviation = call.args.real(Arg::std);
  check(deviation >= 0, "normal: std must not be negative, got {}", deviation);
  const auto count = static_cast<size_t>(out.numel());
  const auto paired = static_cast<int64_t>(count + count % 2);
  const bool wide = out.type == DType::Float64;
  Values open(static_cast<size_t>(paired)), plain(static_cast<size_t>(paired));
  if (wide) {
    const auto words = draw_wide_words(generator_named(call), paired);
    for (size_t i = 0; i < words.size(); ++i)
      open[i] = philox_open53(words[i]), plain[i] = philox_uniform53(words[i]);
  } else {
    const auto words = draw_words(generator_named(call), paired);
    for (size_t i = 0; i < words.size(); ++i)
      open[i] = philox_open24(words[i]), plain[i] = philox_uniform24(words[i]);
  }
  Values values(static_cast<size_t>(paired));
  for (size_t i = 0; i < values.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log(open[i]));
    const double angle = 2 * kPi * plain[i + 1];
    values[i] = mean + deviation * radius * std::cos(angle);
    values[i + 1] = mean + deviation * radius * std::sin(angle);
  }
  write(out, values);
}

void exponential(const CpuCall& call) {
  check_real_output(call);
  const View out = call.out(0);
  const double lambda = call.args.real(Arg::lambd);
  check(lambda > 0, "exponential: lambda must be positive, got {}", lambda);
  Values values = draw_open_uniform(generator_named(call), out.numel(), out.type);
  // A logarithm of 1 would make the result -0, which the distribution does not have.
  const double least = out.type == DType::Float64 ? 0x1p-53 : 0x1p-24;
  for (double& v : values) v = std::max(-std::log(v), least) / lambda;
  write(out, values);
}

// 1 with probability p, per element.
void bernoulli_with(const CpuCall& call, const Values& p) {
  const View out = call.out(0);
  const Values draws = draw_uniform(generator_named(call), out.numel(), out.type);
  std::vector<int64_t> values(draws.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double probability = p[p.size() == 1 ? 0 : i];
    check(probability >= 0 && probability <= 1,
          "bernoulli: probabilities must be between 0 and 1, got {}", probability);
    values[i] = draws[i] < probability;
  }
  write(out, values);
}
void bernoulli(const CpuCall& call) {
  bernoulli_with(call, read<double>(call.args.tensor(Arg::self)));
}
void bernoulli_number(const CpuCall& call) { bernoulli_with(call, {call.args.real(Arg::p)}); }
void bernoulli_tensor(const CpuCall& call) {
  bernoulli_with(call,
                 read<double>(View(call.args.tensor(Arg::p)).broadcast_to(call.out(0).sizes)));
}

// Integers in [from, from + range); range 0 stands for 2^64.
void integers(const CpuCall& call, int64_t from, uint64_t range) {
  const View out = call.out(0);
  std::vector<int64_t> values;
  if (range != 0 && range <= uint64_t{1} << 32) {
    for (uint32_t w : draw_words(generator_named(call), out.numel()))
      values.push_back(from + static_cast<int64_t>(w % range));
  } else {
    for (uint64_t w : draw_wide_words(generator_named(call), out.numel()))
      values.push_back(
          static_cast<int64_t>(static_cast<uint64_t>(from) + (range == 0 ? w : w % range)));
  }
  write(out, values);
}

void random(const CpuCall& call) { integers(call, 0, whole_numbers(call.out(0).type)); }
void random_to(const CpuCall& call) {
  const int64_t to = call.args.integer(Arg::to);
  check(to > 0, "random: to must be positive, got {}", to);
  integers(call, 0, static_cast<uint64_t>(to));
}
void random_from(const CpuCall& call) {
  const int64_t from = call.args.integer(Arg::from);
  const auto to = call.args.optional_integer(Arg::to);
  if (to) {
    check(from < *to, "random: from must be below to, got {} and {}", from, *to);
    return integers(call, from, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from));
  }
  const DType type = call.out(0).type;
  const bool everything = type == DType::Int64 && from == INT64_MIN;
  check(everything || from < 0 || static_cast<uint64_t>(from) < whole_numbers(type),
        "random: from {} is outside of the range of {}", from, name(type));
  integers(call, from, everything ? 0 : whole_numbers(type) - static_cast<uint64_t>(from));
}

void randperm(const CpuCall& call) {
  const auto keys = draw_wide_words(generator_named(call), call.args.integer(Arg::n));
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  write(call.out(0), order);
}

void check_weights(std::span<const double> row) {
  double sum = 0;
  for (double w : row) {
    check(w >= 0 && std::isfinite(w),
          "multinomial: weights must be finite and not negative, got {}", w);
    sum += w;
  }
  check(sum > 0, "multinomial: the sum of a row's weights must be positive, got {}", sum);
}

// With replacement: the inverse of the inclusive cumulative sum.
void sample_row(std::span<const double> row, std::span<const double> draws, int64_t* out) {
  Values sums(row.begin(), row.end());
  for (size_t c = 1; c < sums.size(); ++c) sums[c] += sums[c - 1];
  for (double u : draws) {
    auto at = std::upper_bound(sums.begin(), sums.end(), u * sums.back());
    if (at == sums.end()) at = std::lower_bound(sums.begin(), sums.end(), sums.back());
    *out++ = at - sums.begin();
  }
}

// Without replacement: an exponential race. The samples with the smallest -ln(u) / p, in that
// order.
void race_row(std::span<const double> row, std::span<const double> draws, int64_t samples,
              int64_t* out) {
  Values times(row.size());
  for (size_t c = 0; c < row.size(); ++c)
    times[c] = row[c] > 0 ? -std::log(draws[c]) / row[c] : kInfinity;
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return times[static_cast<size_t>(a)] < times[static_cast<size_t>(b)];
  });
  std::copy_n(order.begin(), samples, out);
}

void multinomial(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const auto weights = read<double>(self);
  const int64_t samples = call.args.integer(Arg::num_samples);
  const bool replacement = call.args.boolean(Arg::replacement);
  const int64_t categories = self.sizes.back();
  const int64_t rows = self.ndim() == 1 ? 1 : self.sizes[0];
  const int64_t per_row = replacement ? samples : categories;
  const auto row_of = [&](int64_t r) {
    return std::span(weights).subspan(static_cast<size_t>(r * categories),
                                      static_cast<size_t>(categories));
  };
  for (int64_t r = 0; r < rows; ++r) check_weights(row_of(r));
  const auto draw = replacement ? draw_uniform : draw_open_uniform;
  const Values draws = draw(generator_named(call), rows * per_row, self.type);
  std::vector<int64_t> result(static_cast<size_t>(rows * samples));
  for (int64_t r = 0; r < rows; ++r) {
    const auto mine =
        std::span(draws).subspan(static_cast<size_t>(r * per_row), static_cast<size_t>(per_row));
    if (replacement)
      sample_row(row_of(r), mine, result.data() + r * samples);
    else
      race_row(row_of(r), mine, samples, result.data() + r * samples);
  }
  write(call.out(0), result);
}

void dropout(const CpuCall& call) {
  const View input = call.args.tensor(Arg::input);
  const double p = call.args.real(Arg::p);
  Values values = read<double>(input);
  std::vector<int64_t> mask(values.size(), 1);
  if (call.args.optional_boolean(Arg::train).value_or(true)) {
    const Values draws = draw_uniform(nullptr, input.numel(), input.type);
    const double scale = p == 1 ? 0 : 1 / (1 - p);
    for (size_t i = 0; i < values.size(); ++i) {
      mask[i] = draws[i] >= p;
      values[i] *= static_cast<double>(mask[i]) * scale;
    }
  }
  write(call.out(0), values);
  write(call.out(1), mask);
}

void dropout_backward(const CpuCall& call) {
  const Dims& sizes = call.specs[0].sizes;
  Values values = read<double>(View(call.args.tensor(Arg::grad_output)).broadcast_to(sizes));
  const auto mask = read<double>(View(call.args.tensor(Arg::mask)).broadcast_to(sizes));
  const double scale = call.args.real(Arg::scale);
  for (size_t i = 0; i < values.size(); ++i) values[i] *= mask[i] * scale;
  write(call.out(0), values);
}

constexpr CpuOperator kOperators[] = {
    {"uniform.out", uniform},
    {"normal.out", normal},
    {"exponential.out", exponential},
    {"bernoulli.out", bernoulli},
    {"bernoulli.float_out", bernoulli_number},
    {"bernoulli.Tensor_out", bernoulli_tensor},
    {"random.out", random},
    {"random.to_out", random_to},
    {"random.from_out", random_from},
    {"randperm.generator_out", randperm},
    {"multinomial.out", multinomial},
    {"native_dropout.out", dropout},
    {"native_dropout_backward.out", dropout_backward},
};

}  // namespace

std::span<const CpuOperator> random_operators() {
  static const auto all = joined({kOperators, rejection_operators()});
  return all;
}

std::vector<uint32_t> draw_words(tb_generator generator, int64_t count) {
  const Generator::State state = generator_of(generator).take(static_cast<uint64_t>(count));
  std::vector<uint32_t> words(static_cast<size_t>((count + 3) / 4 * 4));
  for (size_t i = 0; i < words.size() / 4; ++i)
    philox_block(state.seed, state.offset + i, &words[4 * i]);
  words.resize(static_cast<size_t>(count));
  return words;
}

std::vector<uint64_t> draw_wide_words(tb_generator generator, int64_t count) {
  const auto words = draw_words(generator, 2 * count);
  std::vector<uint64_t> wide(static_cast<size_t>(count));
  for (size_t i = 0; i < wide.size(); ++i)
    wide[i] = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
  return wide;
}

namespace {

// Numbers of words: of 64 bits for float64, else of 32.
std::vector<double> draw_numbers(tb_generator generator, int64_t count, DType type,
                                 double (*of_wide)(uint64_t), double (*of_word)(uint32_t)) {
  std::vector<double> values;
  if (type == DType::Float64)
    for (uint64_t w : draw_wide_words(generator, count)) values.push_back(of_wide(w));
  else
    for (uint32_t w : draw_words(generator, count)) values.push_back(of_word(w));
  return values;
}

}  // namespace

std::vector<double> draw_uniform(tb_generator generator, int64_t count, DType type) {
  return draw_numbers(generator, count, type, philox_uniform53, philox_uniform24);
}

std::vector<double> draw_open_uniform(tb_generator generator, int64_t count, DType type) {
  return draw_numbers(generator, count, type, philox_open53, philox_open24);
}

}  // namespace ocltensor::cpu
