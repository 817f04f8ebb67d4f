// Cases of the scan family: cumsum, cumprod, logcumsumexp, cummax and cummin.
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

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const bool product = op.schema.name == "cumprod";
  const Dims sizes = draw.shape(0, 5);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = rank == 0 ? 0 : draw.rng.range(0, rank - 1);
  c.set("dim", Scalar(rank > 0 && draw.rng.chance(0.3) ? dim - rank : dim));
  if (op.schema.name == "cummax" || op.schema.name == "cummin")
    return make_extremes(std::move(c), dtype, sizes, draw);
  const Domain factors = is_floating(dtype) ? Domain{0.8, 1.25, 0, true, false} : Domain{-2, 2};
  c.set("self", draw.tensor(dtype, sizes, product ? factors : Domain{-4, 4, 0, true, false}));
  const double n = rank == 0 ? 1 : static_cast<double>(sizes[static_cast<size_t>(dim)]);
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

const FamilyCases kScanCases = {"scan", accepts, make};

}  // namespace ocltensor::testing
