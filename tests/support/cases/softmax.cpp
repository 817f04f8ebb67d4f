// Cases of the softmax family.
#include <cmath>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) { return is_floating(dtype); }

// The log of a softmax lies below 0, a softmax between 0 and 1: backward passes take such values.
Domain output_domain(bool log) { return log ? Domain{-6, -0.1} : Domain{0, 0.5}; }

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const bool log = op.schema.name.starts_with("_log");
  const bool backward = op.schema.name.ends_with("backward_data");
  const Dims sizes = draw.shape(0, 5);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = rank == 0 ? 0 : draw.rng.range(0, rank - 1);
  c.set("dim", Scalar(rank > 0 && draw.rng.chance(0.3) ? dim - rank : dim));
  const double n =
      rank == 0 ? 1 : static_cast<double>(std::max<int64_t>(1, sizes[static_cast<size_t>(dim)]));
  if (backward) {
    c.set("grad_output", draw.tensor(dtype, sizes));
    c.set("output", draw.tensor(dtype, sizes, output_domain(log)));
    c.set("input_dtype", dtype);
    c.tolerance = {{Scale::Inputs, 8, n, 2, nullptr, "grad - output * sum(grad): sums of n terms"}};
  } else {
    c.set("self", draw.tensor(dtype, sizes, {-8, 8, 0, true, false}));
    c.set("half_to_float", Scalar(dtype == DType::Float16 && draw.rng.chance(0.2)));
    c.tolerance = {
        {log ? Scale::Unit : Scale::Result, 16, n, 1, nullptr,
         "exp of x - max (3 ulp, |x| <= 16 adds 16 eps) over a sum of n positive terms"}};
  }
  return c;
}

}  // namespace

const FamilyCases& softmax_cases() {
  static constexpr FamilyCases kCases = {"softmax", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
