// Moments of the random operators: bit-exact agreement with the CPU backend would not notice a
// defect that both have.
#include <fmt/format.h>

#include <cmath>

#include "crash.h"
#include "operator_suite.h"
#include "support/case.h"
#include "support/execute.h"

namespace ocltensor::conformance {
namespace {

using namespace testing;

struct Row {
  const char* op;
  std::vector<std::pair<const char*, double>> numbers;
  double mean, variance, fourth;  // fourth central moment, for the error of the variance
};

const Row kRows[] = {
    {"uniform.out", {{"from", -1}, {"to", 3}}, 1, 16.0 / 12, 256.0 / 80},
    {"normal.out", {{"mean", 2}, {"std", 3}}, 2, 9, 3 * 81},
    {"exponential.out", {{"lambd", 2}}, 0.5, 0.25, 9.0 / 16},
    {"bernoulli.float_out", {{"p", 0.3}}, 0.3, 0.21, 0.21 * (0.3 * 0.3 * 0.3 + 0.7 * 0.7 * 0.7)},
};

std::string check(const Backend& backend, const Row& row) {
  constexpr int64_t kCount = 200000;
  const Operator& op = *find_operator(row.op);
  Case c = make_case(op, DType::Float32);
  c.seed = 12345;
  HostTensor self(DType::Float32, {kCount});
  c.set("self", std::make_shared<TensorData>(TensorData{self, {{1}, 0, kCount}}));
  for (const auto& [name, value] : row.numbers) c.set(name, Scalar(value));
  const Outcome outcome = execute(backend, c, infer(c), nullptr);
  if (outcome.status != TB_OK) return {};
  const HostTensor& x = outcome.outs[0];
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < kCount; ++i) mean += x.real(i) / kCount;
  for (int64_t i = 0; i < kCount; ++i) variance += std::pow(x.real(i) - mean, 2) / kCount;
  // Five standard errors: one wrong alarm in a million.
  const double mean_error = 5 * std::sqrt(row.variance / kCount);
  const double variance_error = 5 * std::sqrt((row.fourth - row.variance * row.variance) / kCount);
  if (std::abs(mean - row.mean) <= mean_error &&
      std::abs(variance - row.variance) <= variance_error)
    return {};
  return fmt::format(
      "{}: mean {:.5g}, expected {:.5g} +- {:.2g}; variance {:.5g}, {:.5g} +- {:.2g}", row.op, mean,
      row.mean, mean_error, variance, row.variance, variance_error);
}

}  // namespace

std::vector<std::string> check_moments(const Backend& backend, const Options& options) {
  std::vector<std::string> failures;
  for (const Row& row : kRows) {
    if (backend.find(row.op) == nullptr || !options.wants(row.op)) continue;
    set_current("moments", fmt::format("200000 numbers of {}", row.op));
    std::string text = check(backend, row);
    if (!text.empty()) failures.push_back(std::move(text));
  }
  return failures;
}

}  // namespace ocltensor::conformance
