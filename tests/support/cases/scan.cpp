// Cases of the scan family: cumsum and cumprod.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) { return !is_complex(dtype); }

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const bool product = op.schema.name == "cumprod";
  const Dims sizes = draw.shape(0, 5);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = rank == 0 ? 0 : draw.rng.range(0, rank - 1);
  const Domain factors = is_floating(dtype) ? Domain{0.8, 1.25, 0, true, false} : Domain{-2, 2};
  c.set("self", draw.tensor(dtype, sizes, product ? factors : Domain{-4, 4, 0, true, false}));
  c.set("dim", Scalar(rank > 0 && draw.rng.chance(0.3) ? dim - rank : dim));
  const double n = rank == 0 ? 1 : static_cast<double>(sizes[static_cast<size_t>(dim)]);
  c.tolerance = {product ? Tolerance{Scale::Result, 4, n, 1, nullptr, "n roundings of a product"}
                         : sum_of(n)};
  if (draw.rng.chance(0.12) && !is_floating(dtype)) c.set("dtype", DType::Float32);
  c.flops = static_cast<double>(numel(sizes));
  return c;
}

const BenchShape kBench[] = {{"1M", {1 << 20}}, {"rows", {1024, 1024}}, {"16M", {4096, 4096}}};

}  // namespace

const FamilyCases kScanCases = {"scan", accepts, make, kBench};

}  // namespace ocltensor::testing
