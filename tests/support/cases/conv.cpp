// Cases of the conv family: convolution in 1 to 3 dimensions, transposed, grouped, and its
// backward.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator& op, DType dtype) {
  return is_floating(dtype) || (is_integral(dtype, false) && op.schema.name == "convolution");
}

struct Geometry {
  int64_t n, in, out, groups;
  std::vector<int64_t> size, kernel, stride, padding, dilation, output_padding;
  bool transposed;
  int64_t output(size_t d) const {
    const int64_t span = dilation[d] * (kernel[d] - 1) + 1;
    return transposed ? (size[d] - 1) * stride[d] - 2 * padding[d] + span + output_padding[d]
                      : (size[d] + 2 * padding[d] - span) / stride[d] + 1;
  }
};

// Windows of 3 x 3 over so much that drivers of processors compute them by Winograd's tiles of 4 x
// 4: maps that are no multiple of a tile, channels that are no multiple of a vector.
Geometry choose_tiles(Draw& draw) {
  auto& rng = draw.rng;
  Geometry g;
  g.n = rng.range(1, 3);
  g.groups = 1;
  g.in = rng.range(8, 21);
  g.out = rng.range(8, 40);
  g.transposed = rng.chance(0.4);
  g.size = {rng.range(24, 33), rng.range(48, 63)};
  g.kernel = {3, 3};
  g.stride = g.dilation = {1, 1};
  g.padding = {rng.range(0, 2), rng.range(0, 2)};
  g.output_padding = {0, 0};
  return g;
}

Geometry choose(Draw& draw) {
  auto& rng = draw.rng;
  if (draw.size_mode() == SizeMode::Medium && rng.chance(0.3)) return choose_tiles(draw);
  const bool big = draw.size_mode() == SizeMode::Medium || draw.size_mode() == SizeMode::Large;
  const int64_t rank = rng.chance(0.7) ? 2 : rng.range(1, 3);
  Geometry g;
  g.n = rng.range(1, 3);
  g.groups = rng.chance(0.6) ? 1 : rng.range(2, 4);
  g.in = g.groups * rng.range(1, big ? 8 : 3);
  g.out = g.groups * rng.range(1, big ? 8 : 3);
  g.transposed = rng.chance(0.35);
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t k = rng.range(1, rank == 3 ? 3 : 5);
    const int64_t s = rng.range(1, 3);
    const int64_t dilation = rng.range(1, 2);
    const int64_t p = rng.range(0, k - 1);
    const int64_t span = dilation * (k - 1) + 1;
    g.kernel.push_back(k);
    g.stride.push_back(s);
    g.dilation.push_back(dilation);
    // A transposed result shrinks by the padding: keep it positive.
    g.padding.push_back(g.transposed ? std::min(p, (span - 1) / 2) : p);
    g.size.push_back(std::max<int64_t>(span - 2 * g.padding.back(), 1) +
                     rng.range(0, big && rank < 3 ? 20 : 6));
    g.output_padding.push_back(g.transposed ? rng.range(0, std::max(s, dilation) - 1) : 0);
  }
  return g;
}

Dims with(int64_t a, int64_t b, const std::vector<int64_t>& rest) {
  Dims sizes{a, b};
  for (int64_t v : rest) sizes.push_back(v);
  return sizes;
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const Geometry g = choose(draw);
  const bool backward = op.schema.name == "convolution_backward";
  std::vector<int64_t> result;
  const int64_t channels = g.in / g.groups;
  double taps = static_cast<double>(channels), positions = 1;
  for (size_t d = 0; d < g.kernel.size(); ++d) {
    result.push_back(g.output(d));
    taps *= static_cast<double>(g.kernel[d]);
    positions *= static_cast<double>(g.output(d));
  }
  const Domain domain{-2, 2};
  c.set("input", draw.tensor(dtype, with(g.n, g.in, g.size), domain));
  c.set("weight", draw.tensor(dtype,
                              g.transposed ? with(g.in, g.out / g.groups, g.kernel)
                                           : with(g.out, g.in / g.groups, g.kernel),
                              domain));
  c.set("stride", g.stride);
  c.set("padding", g.padding);
  c.set("dilation", g.dilation);
  c.set("transposed", Scalar(g.transposed));
  c.set("output_padding", g.output_padding);
  c.set("groups", Scalar(g.groups));
  if (backward) {
    c.set("grad_output", draw.tensor(dtype, with(g.n, g.out, result), domain));
    std::vector<bool> mask(3, true);
    if (draw.rng.chance(0.4)) mask[static_cast<size_t>(draw.rng.range(0, 2))] = false;
    c.set("output_mask", mask);
    c.set("bias_sizes", std::vector<int64_t>{g.out});
  } else if (draw.rng.chance(0.6)) {
    c.set("bias", draw.tensor(dtype, {g.out}, domain));
  }
  const double batch = static_cast<double>(g.n);
  c.tolerance = {sum_of(backward ? taps + batch * positions : taps + 1)};
  return c;
}

}  // namespace

const FamilyCases& conv_cases() {
  static constexpr FamilyCases kCases = {"conv", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
