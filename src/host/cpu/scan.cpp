// Cumulative sums and products.
#include "rows.h"

namespace ocltensor::cpu {
namespace {

void scan(const CpuCall& call, bool product) {
  const int64_t dim = call.args.integer(1);
  with_compute(call.specs[0].dtype, [&]<typename T>(T) {
    DimRows<T> rows(call.args.tensor(0), dim);
    for (int64_t r = 0; r < rows.count; ++r) {
      T total = product ? 1 : 0;
      for (T& v : rows[r]) v = total = product ? total * v : total + v;
    }
    rows.write_to(call.out(0), dim);
  });
}
void cumsum(const CpuCall& call) { scan(call, false); }
void cumprod(const CpuCall& call) { scan(call, true); }

constexpr CpuOperator kOperators[] = {{"cumsum.out", cumsum}, {"cumprod.out", cumprod}};

}  // namespace

std::span<const CpuOperator> scan_operators() { return kOperators; }

}  // namespace ocltensor::cpu
