// Distances between all pairs of rows, and their gradient.
#include <cmath>

#include "call.h"

namespace ocltensor::cpu {
namespace {

double norm(const double* a, const double* b, int64_t n, double p) {
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) {
    const double d = std::abs(a[c] - b[c]);
    if (p == 0)
      sum += d != 0 ? 1 : 0;
    else if (std::isinf(p))
      sum = d > sum || std::isnan(d) ? d : sum;
    else
      sum += std::pow(d, p);
  }
  return p == 0 || std::isinf(p) ? sum : std::pow(sum, 1 / p);
}

// The derivative of a norm by a difference, 0 where there is none.
double slope(double d, double distance, double p) {
  const double sign = d > 0 ? 1 : d < 0 ? -1 : d;
  if (p == 0) return 0;
  if (p == 1) return sign;
  if (std::isinf(p)) return std::abs(d) == distance ? sign : 0;
  if (distance == 0 || (p < 1 && d == 0)) return 0;
  return sign * std::pow(std::abs(d) / distance, p - 1);
}

void forward(const CpuCall& call) {
  const TensorView self = call.args.tensor(Arg::self);
  const auto x = read<double>(self);
  const int64_t rows = self.size(0), columns = self.size(1);
  std::vector<double> result;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i + 1; j < rows; ++j)
      result.push_back(columns == 0 ? 0
                                    : norm(x.data() + i * columns, x.data() + j * columns, columns,
                                           call.args.real(Arg::p)));
  write(call.out(0), result);
}

void backward(const CpuCall& call) {
  const TensorView self = call.args.tensor(Arg::self);
  const auto grad = read<double>(call.args.tensor(Arg::grad)), x = read<double>(self),
             distance = read<double>(call.args.tensor(Arg::pdist));
  const int64_t rows = self.size(0), columns = self.size(1);
  std::vector<double> result(x.size());
  size_t pair = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i + 1; j < rows; ++j, ++pair)
      for (int64_t c = 0; c < columns; ++c) {
        const auto a = static_cast<size_t>(i * columns + c),
                   b = static_cast<size_t>(j * columns + c);
        const double share =
            grad[pair] * slope(x[a] - x[b], distance[pair], call.args.real(Arg::p));
        result[a] += share;
        result[b] -= share;
      }
  write(call.out(0), result);
}

constexpr CpuOperator kOperators[] = {{"_pdist_forward.out", forward},
                                      {"_pdist_backward.out", backward}};

}  // namespace

std::span<const CpuOperator> distance_operators() { return kOperators; }

}  // namespace ocltensor::cpu
