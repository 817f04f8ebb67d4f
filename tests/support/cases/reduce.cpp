// Cases of the reduce family.
#include <algorithm>
#include <limits>

#include "base/promotion.h"
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The result is one of the inputs, a position or a count: no arithmetic.
bool selects(const std::string& n) {
  return one_of(n, {"amax", "amin", "aminmax", "argmax", "argmin", "max", "min", "any", "all",
                    "count_nonzero"});
}

bool accepts(const Operator& op, DType dtype) {
  const std::string& n = op.schema.name;
  if (n == "hash_tensor") return !is_complex(dtype);
  if (is_complex(dtype)) return one_of(n, {"sum", "mean", "prod"});
  if (one_of(n, {"mean", "var", "std", "var_mean", "linalg_vector_norm"}))
    return is_floating(dtype);
  if (one_of(n, {"argmax", "argmin"})) return dtype != DType::Bool;
  return true;
}

// Picks dimensions for the argument "dim" by its schema type; returns those reduced.
std::vector<int64_t> choose_dims(Case& c, Draw& draw, int64_t rank) {
  const int at = c.op->schema.input("dim");
  std::vector<int64_t> all;
  for (int64_t d = 0; d < rank; ++d) all.push_back(d);
  if (at < 0) return all;
  const Argument& a = c.op->schema.inputs[static_cast<size_t>(at)];
  CaseValue& slot = c.args[static_cast<size_t>(at)];
  const auto wrapped = [&](int64_t d) { return draw.rng.chance(0.3) ? d - rank : d; };
  if (a.type == ArgType::Int) {
    if (a.optional && draw.rng.chance(0.3)) {
      slot = std::monostate{};
      return all;
    }
    const int64_t d = rank == 0 ? 0 : draw.rng.range(0, rank - 1);
    slot = Scalar(rank == 0 ? d : wrapped(d));
    return rank == 0 ? all : std::vector<int64_t>{d};
  }
  if (a.optional && draw.rng.chance(0.2)) {
    slot = std::monostate{};
    return all;
  }
  std::vector<int64_t> dims, given;
  for (int64_t d = 0; d < rank; ++d)
    if (draw.rng.chance(0.5)) dims.push_back(d);
  if (dims.empty() && rank > 0) dims.push_back(rank - 1);
  for (int64_t d : dims) given.push_back(wrapped(d));
  draw.rng.shuffle(given);
  slot = given;
  return dims;
}

Domain domain_of(const std::string& n, DType dtype, Rng& rng) {
  if (n == "hash_tensor") return {-6, 6, 0, false, true};  // the bits of a NaN are a device's own
  if (selects(n)) return {-6, 6, 0.5, true, true};         // with ties
  // Products stay in the range of the type, sums near it. Infinities only where nothing is below 1:
  // whether they meet a 0 of underflow would depend on the order of the partial products.
  if (n == "prod" && is_complex(dtype)) return {-0.8, 0.8, 0, false, false};
  if (n == "prod" && is_floating(dtype))
    return rng.chance(0.3) ? Domain{1, 1.4, 0, true, false, true, false}
                           : Domain{0.7, 1.4, 0, true, false, false};
  if (n == "prod") return {-3, 3};
  // ATen divides by a complex number: of an infinite part it makes NaN in both.
  if (n == "mean" && is_complex(dtype)) return {-4, 4, 0, true, false, false};
  // ATen itself disagrees with the mathematics at infinities here: Welford's update makes NaN of a
  // mean, and nansum drops the NaN of partial sums that meet both infinities.
  const bool spread = one_of(n, {"var", "std", "var_mean"});
  const double kind = spread ? rng.uniform(0, 1) : 1;
  // Must not cancel; PyTorch itself does in float64, and half types cannot tell such values apart.
  if (kind < 0.3 && dtype == DType::Float32) return {1e4 - 0.03, 1e4 + 0.03, 0, true, false, false};
  if (kind > 0.9 && spread) return {0.1, 0.1, 0, true, false, false};  // no spread at all
  return {-4, 4, 0, true, false, !(spread || n == "nansum")};
}

Tolerance tolerance_of(const Operator& op, double count) {
  const std::string& n = op.schema.name;
  if (n == "hash_tensor") return {Scale::Bits, 0, 1, 1, nullptr, "an exclusive or of bits"};
  if (selects(n)) return {Scale::Exact, 0, 1, 1, nullptr, kWhyExact};
  if (n == "prod")
    return {Scale::Result, 4, count, 1, nullptr, "n roundings, each relative to the result"};
  if (n == "logsumexp")
    return {Scale::Unit, 8, count, 1, nullptr, "log of a sum near 1 is absolutely accurate"};
  if (n == "linalg_vector_norm")
    return {Scale::Result, 16, count, 1, nullptr, "all terms positive; pow is accurate to 16 ulp"};
  if (one_of(n, {"var", "std", "var_mean"}))
    return {Scale::Largest, 16, count, 1, nullptr, "distances to a rounded mean, squared"};
  return sum_of(count);
}

void options(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const Schema& schema = c.op->schema;
  if (schema.input("keepdim") >= 0) c.set("keepdim", Scalar(rng.chance(0.5)));
  if (schema.input("correction") >= 0 && rng.chance(0.6))
    c.set("correction", rng.chance(0.5) ? Scalar(rng.range(0, 2)) : Scalar(0.5));
  if (schema.input("ord") >= 0) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kOrders[] = {0, 1, 2, 3, 0.5, kInf, -kInf, -1};
    c.set("ord", Scalar(rng.pick(kOrders)));
  }
  if (schema.input("dtype") >= 0 && !is_complex(c.dtype) && rng.chance(0.12)) {
    const DType wider =
        is_floating(c.dtype) ? (rng.chance(0.5) ? DType::Float64 : DType::Float32) : DType::Float32;
    if (promote(c.dtype, wider) == wider) c.set("dtype", wider);
  }
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const std::string& n = op.schema.name;
  Dims sizes = draw.shape(0, 5);
  if (selects(n) || n == "linalg_vector_norm" ||
      n == "hash_tensor")  // an empty slice has no extreme
    for (int64_t& s : sizes) s = std::max<int64_t>(s, 1);
  c.set("self", draw.tensor(dtype, sizes, domain_of(n, dtype, draw.rng)));
  double count = 1;
  for (int64_t d : choose_dims(c, draw, static_cast<int64_t>(sizes.size())))
    count *= static_cast<double>(std::max<int64_t>(1, sizes[static_cast<size_t>(d)]));
  options(c, draw);
  c.tolerance = {tolerance_of(op, count)};
  return c;
}

}  // namespace

const FamilyCases& reduce_cases() {
  static constexpr FamilyCases kCases = {"reduce", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
