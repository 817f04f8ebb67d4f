// Cases of the distance family.
#include <limits>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) { return is_floating(dtype); }

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const bool backward = op.schema.name.ends_with("backward");
  // PyTorch 2.13's own gradient of no rows crashes.
  const int64_t rows = rng.range(backward ? 1 : 0, 19);
  const int64_t columns = rng.range(0, 9), pairs = rows * (rows - 1) / 2;
  const double p = rng.pick(
      std::vector<double>{0, 0.5, 1, 1.5, 2, 3.5, std::numeric_limits<double>::infinity()});
  // Of a coarse grid: some numbers are equal.
  c.set("self", draw.tensor(dtype, {rows, columns}, {-2, 2, 0.25}));
  c.set("p", Scalar(p));
  if (backward) {
    c.set("grad", draw.tensor(dtype, {pairs}));
    c.set("pdist", draw.tensor(dtype, {pairs}, {0.5, 4, 0.25}));
  }
  const auto terms = static_cast<double>(std::max<int64_t>(1, backward ? rows : columns));
  c.tolerance = {{Scale::Largest, 32, terms, 1, nullptr, "a sum of powers, and a root of it"}};
  return c;
}

}  // namespace

const FamilyCases& distance_cases() {
  static constexpr FamilyCases kCases = {"distance", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
