// Cases of the scan family: cumsum, cumprod, logcumsumexp, cummax and cummin.
#include <algorithm>
#include <cmath>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator& op, DType dtype) {
  if (op.schema.name == "logcumsumexp") return is_floating(dtype);
  return !is_complex(dtype);
}

// Small integers: many ties, of which the last one counts.
Case make_extremes(Case c, DType dtype, const Dims& sizes, Draw& draw) {
  c.set("self", draw.tensor(dtype, sizes, {-9, 9, 1, true, true}));
  c.same_type = true;
  c.tolerance = {exact()};
  return c;
}

// Of n factors. ATen multiplies 16-bit numbers up in a float, the reference in float64. What leaves
// the float's range differs from there on: too large, it stays infinite; too small, it is 0, and
// NaN after an infinity. So random factors keep the product near 1, and a case has tiny factors or
// infinite ones.
Domain factors_of(DType dtype, double n, Draw& draw) {
  if (!is_floating(dtype)) return {-2, 2};
  if (size_of(dtype) > 2) return {0.8, 1.25, 0, true, false};
  const double away_from_one = std::min(0.2, 4 / std::sqrt(n));
  Domain factors{1 - away_from_one, 1 + away_from_one, 0, true, false};
  factors.infinite = draw.rng.chance(0.5);
  factors.denormals = !factors.infinite;
  return factors;
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const bool product = op.schema.name == "cumprod";
  const Dims sizes = draw.shape(0, 5);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = rank == 0 ? 0 : draw.rng.range(0, rank - 1);
  c.set("dim", Scalar(rank > 0 && draw.rng.chance(0.3) ? dim - rank : dim));
  if (op.schema.name == "cummax" || op.schema.name == "cummin")
    return make_extremes(std::move(c), dtype, sizes, draw);
  const double n = rank == 0 ? 1 : static_cast<double>(sizes[static_cast<size_t>(dim)]);
  const Domain domain = product ? factors_of(dtype, n, draw) : Domain{-4, 4, 0, true, false};
  c.set("self", draw.tensor(dtype, sizes, domain));
  c.tolerance = {product ? Tolerance{Scale::Result, 4, n, 1, nullptr, "n roundings of a product"}
                         : sum_of(n)};
  if (op.schema.name == "logcumsumexp") {
    c.tolerance = {
        {Scale::Absolute, 4, n, 1, nullptr, "n roundings of a logarithm below 4 + log n"}};
    return c;
  }
  if (draw.rng.chance(0.12) && !is_floating(dtype)) c.set("dtype", DType::Float32);
  return c;
}

}  // namespace

const FamilyCases& scan_cases() {
  static constexpr FamilyCases kCases = {"scan", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
