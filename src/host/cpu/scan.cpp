// Cumulative sums, products, extremes and sums of exponentials.
#include <cmath>

#include "rows.h"

namespace ocltensor::cpu {
namespace {

void scan(const CpuCall& call, bool product) {
  const int64_t dim = call.args.integer(Arg::dim);
  with_compute(call.specs[0].dtype, [&]<typename T>(T) {
    DimRows<T> rows(call.args.tensor(Arg::self), dim);
    for (int64_t r = 0; r < rows.count; ++r) {
      T total = product ? 1 : 0;
      for (T& v : rows[r]) v = total = product ? total * v : total + v;
    }
    rows.write_to(call.out(0), dim);
  });
}
void cumsum(const CpuCall& call) { scan(call, false); }
void cumprod(const CpuCall& call) { scan(call, true); }

double log_add_exp(double x, double y) {
  if (x == y) return x + std::log(2.0);
  return x != x || y != y ? x + y : std::max(x, y) + std::log1p(std::exp(-std::abs(x - y)));
}

void logcumsumexp(const CpuCall& call) {
  const int64_t dim = call.args.integer(Arg::dim);
  DimRows<double> rows(call.args.tensor(Arg::self), dim);
  for (int64_t r = 0; r < rows.count; ++r) {
    double total = -std::numeric_limits<double>::infinity();
    for (double& v : rows[r]) v = total = log_add_exp(total, v);
  }
  rows.write_to(call.out(0), dim);
}

// Of equal extremes the index is the last one's. After a NaN, every value is NaN.
void extremes(const CpuCall& call, bool largest) {
  const int64_t dim = call.args.integer(Arg::dim);
  const View self = call.args.tensor(Arg::self);
  with_compute(self.type, [&]<typename T>(T) {
    DimRows<T> rows(self, dim);
    std::vector<int64_t> indices;
    for (int64_t r = 0; r < rows.count; ++r) {
      size_t at = 0;
      for (size_t i = 0; i < rows[r].size(); ++i) {
        const T v = rows[r][i];
        const T best = rows[r][at];
        if (v != v || (best == best && (largest ? v >= best : v <= best))) at = i;
        indices.push_back(static_cast<int64_t>(at));
      }
    }
    std::vector<T> values;
    for (size_t k = 0; k < indices.size(); ++k) {
      const auto row = static_cast<int64_t>(k) / rows.length;
      values.push_back(rows[row][static_cast<size_t>(indices[k])]);
    }
    write(call.out(0).with_last_dim(dim), values);
    write(call.out(1).with_last_dim(dim), indices);
  });
}
void cummax(const CpuCall& call) { extremes(call, true); }
void cummin(const CpuCall& call) { extremes(call, false); }

constexpr CpuOperator kOperators[] = {{"cumsum.out", cumsum},
                                      {"cumprod.out", cumprod},
                                      {"logcumsumexp.out", logcumsumexp},
                                      {"cummax.out", cummax},
                                      {"cummin.out", cummin}};

}  // namespace

std::span<const CpuOperator> scan_operators() { return kOperators; }

}  // namespace ocltensor::cpu
