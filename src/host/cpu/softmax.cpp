// Softmax and log-softmax along a dimension.
#include <cmath>

#include "rows.h"
#include "special.h"

namespace ocltensor::cpu {
namespace {

void forward(const CpuCall& call, bool logarithm) {
  const int64_t dim = call.args.integer(Arg::dim);
  DimRows<double> rows(call.args.tensor(Arg::self), dim);
  for (int64_t r = 0; r < rows.count; ++r) {
    const auto row = rows[r];
    double top = row[0];
    for (double v : row) top = special::maximum(top, v);
    double sum = 0;
    for (double v : row) sum += std::exp(v - top);
    for (double& v : row) v = logarithm ? v - top - std::log(sum) : std::exp(v - top) / sum;
  }
  rows.write_to(call.out(0), dim);
}
void softmax(const CpuCall& call) { forward(call, false); }
void log_softmax(const CpuCall& call) { forward(call, true); }

// softmax: y (g - sum(g y)); log-softmax: g - exp(y) sum(g).
void backward(const CpuCall& call, bool logarithm) {
  const int64_t dim = call.args.integer(Arg::dim);
  DimRows<double> gradient(call.args.tensor(Arg::grad_output), dim);
  DimRows<double> output(call.args.tensor(Arg::output), dim);
  for (int64_t r = 0; r < gradient.count; ++r) {
    const auto g = gradient[r];
    const auto y = output[r];
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) sum += logarithm ? g[i] : g[i] * y[i];
    for (size_t i = 0; i < g.size(); ++i)
      g[i] = logarithm ? g[i] - std::exp(y[i]) * sum : y[i] * (g[i] - sum);
  }
  gradient.write_to(call.out(0), dim);
}
void softmax_backward(const CpuCall& call) { backward(call, false); }
void log_softmax_backward(const CpuCall& call) { backward(call, true); }

constexpr CpuOperator kOperators[] = {
    {"_softmax.out", softmax},
    {"_softmax_backward_data.out", softmax_backward},
    {"_log_softmax.out", log_softmax},
    {"_log_softmax_backward_data.out", log_softmax_backward},
};

}  // namespace

std::span<const CpuOperator> softmax_operators() { return kOperators; }

}  // namespace ocltensor::cpu
