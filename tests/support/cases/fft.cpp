// Cases of the fft family: one to three dimensions, lengths with small and with large prime
// factors.
#include <algorithm>
#include <cmath>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator& op, DType dtype) {
  if (op.schema.name != "_fft_r2c") return is_complex(dtype);
  return dtype == DType::Float32 || dtype == DType::Float64;
}

Dims choose(Draw& draw) {
  constexpr int64_t kLengths[] = {1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 17, 30, 36, 49, 64, 105};
  Dims sizes;
  for (int64_t d = draw.rng.range(1, 3); d > 0; --d)
    sizes.push_back(draw.rng.chance(0.6) ? draw.rng.pick(kLengths) : draw.rng.range(1, 40));
  for (int64_t& n : sizes)
    if (numel(sizes) > 20000) n = 3;
  if (draw.size_mode() == SizeMode::Edge && sizes.size() > 1 && draw.rng.chance(0.3)) sizes[0] = 0;
  return sizes;
}

// Some of the dimensions, in any order; not the empty one. Not counted from the end: what calls
// these operators never does, and PyTorch's own crash on it.
std::vector<int64_t> dims_of(Draw& draw, const Dims& sizes) {
  std::vector<int64_t> all;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 0) all.push_back(static_cast<int64_t>(d));
  draw.rng.shuffle(all);
  all.resize(static_cast<size_t>(draw.rng.range(1, static_cast<int64_t>(all.size()))));
  return all;
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  Dims sizes = choose(draw);
  const auto dims = dims_of(draw, sizes);
  double points = 1;
  for (const int64_t d : dims) points *= static_cast<double>(sizes[static_cast<size_t>(d)]);
  const int64_t last = dims.back();
  if (op.schema.name == "_fft_c2r") {
    int64_t& length = sizes[static_cast<size_t>(last)];
    c.set("last_dim_size", Scalar(length));
    length = length / 2 + 1;
  } else if (op.schema.name == "_fft_r2c") {
    c.set("onesided", Scalar(draw.rng.chance(0.7)));
  } else {
    c.set("forward", Scalar(draw.rng.chance(0.5)));
  }
  c.set("self", draw.tensor(dtype, sizes, {-3, 3, 0, false, false}));
  c.set("dim", dims);
  c.set("normalization", Scalar(draw.rng.range(0, 2)));
  // The reference computes in double whatever the type.
  c.same_type = true;
  // N. Higham, Accuracy and Stability of Numerical Algorithms (2002), theorem 24.2: the error's
  // norm is log2(n) times a few half eps of the result's, three times over where a prime length is
  // made of transforms. Of random numbers both spread evenly, so that each element's error is as
  // much of the largest result at most.
  c.tolerance = {{Scale::Largest, 2 * std::log2(points) + 4, 1, 1, nullptr,
                  "log2(n) roundings of evenly spread numbers, three times over for primes"}};
  return c;
}

}  // namespace

const FamilyCases& fft_cases() {
  static constexpr FamilyCases kCases = {"fft", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
