// Cases of the random family: the numbers for a given generator state must be the CPU backend's.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator& op, DType dtype) {
  const std::string& n = op.schema.name;
  if (is_complex(dtype)) return false;
  if (n == "bernoulli" && op.schema.overload != "out") return true;
  if (n == "random") return true;
  if (n == "randperm") return dtype == DType::Int64 || dtype == DType::Int32;
  return is_floating(dtype);
}

constexpr const char* kWhyUlps =
    "the same random bits through log, sqrt, sin and cos: some ulps of a value near 1";

constexpr const char* kWhyPowers =
    "the same random bits through a logarithm divided by a shape of 1/4, and a cube";

void interval(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const std::string& overload = c.op->schema.overload;
  const int64_t limit =
      is_floating(c.dtype) || c.dtype == DType::Int8 || c.dtype == DType::UInt8 ? 100 : 30000;
  const int64_t top = c.dtype == DType::Bool ? 2 : rng.range(2, limit);
  if (overload != "out") c.set("to", Scalar(top));
  if (overload == "from_out")
    c.set("from",
          Scalar(c.dtype == DType::Bool || c.dtype == DType::UInt8 ? 0 : rng.range(-100, 0)));
}

// Parameters on both sides of what the algorithms tell apart.
void by_rejection(Case& c, Draw& draw, const Dims& sizes) {
  const std::string& n = c.op->schema.name;
  const bool large = draw.rng.chance(0.5);
  if (n == "binomial") {
    c.set("count", draw.tensor(c.dtype, sizes, {0, large ? 250.0 : 12.0, 1}));
    c.set("prob", draw.tensor(c.dtype, sizes, {0, 1}));
  } else if (n == "poisson") {
    c.set("self", draw.tensor(c.dtype, sizes, {0, large ? 200.0 : 12.0}));
  } else {
    c.set("self", draw.tensor(c.dtype, sizes, {0.25, large ? 40.0 : 2.0}));
    c.tolerance = {{Scale::Result, 64, 1, 1, nullptr, kWhyPowers}};
  }
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const std::string& n = op.schema.name;
  const Dims sizes = draw.shape();
  c.same_type = true;
  c.tolerance = {exact()};
  if (n == "randperm") {
    c.set("n", Scalar(draw.extent(500)));
    c.out_dtype = dtype;
  } else if (n == "multinomial") {
    const int64_t classes = draw.extent(40);
    const Dims shape = rng.chance(0.5) ? Dims{classes} : Dims{draw.extent(12), classes};
    c.set("self", draw.tensor(dtype, shape, {0.125, 1}));
    c.set("replacement", Scalar(rng.chance(0.5)));
    c.set("num_samples", Scalar(rng.range(1, classes)));
  } else if (n == "native_dropout" || n == "native_dropout_backward") {
    c.args[0] = draw.tensor(dtype, sizes);
    if (n == "native_dropout") {
      c.set("p", Scalar(rng.chance(0.2) ? 0.0 : 0.25));
      c.set("train", Scalar(rng.chance(0.8)));
    } else {
      c.set("mask", draw.tensor(DType::Bool, sizes));
      c.set("scale", Scalar(1.25));
    }
    c.tolerance = {{Scale::Result, 1, 1, 1, nullptr, "one product"}};
  } else if (n == "_standard_gamma" || n == "poisson" || n == "binomial") {
    by_rejection(c, draw, sizes);
  } else {
    const bool probabilities = n == "bernoulli" && op.schema.overload == "out";
    c.set("self", draw.tensor(dtype, sizes, probabilities ? Domain{0, 1} : Domain{}));
    if (op.schema.input("p") >= 0)
      c.set("p", op.schema.overload == "float_out"
                     ? CaseValue(Scalar(0.25))
                     : CaseValue(draw.tensor(is_floating(dtype) ? dtype : DType::Float32, sizes,
                                             {0, 1})));
    if (n == "random") interval(c, draw);
    if (n == "normal" || n == "exponential")
      c.tolerance = {{Scale::Unit, 16, 1, 1, nullptr, kWhyUlps}};
    if (n == "uniform" && rng.chance(0.5)) {
      c.set("from", Scalar(-2.0));
      c.set("to", Scalar(6.0));
    }
  }
  return c;
}

}  // namespace

const FamilyCases& random_cases() {
  static constexpr FamilyCases kCases = {"random", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
