// Cases of the sampling family.
#include <cmath>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) { return is_floating(dtype); }

// Coordinates whose places in the image are far enough from whole and half ones that every type
// finds the same taps: there results, or their derivatives, jump. Some are outside.
HostTensor grid_of(Draw& draw, DType dtype, const Dims& sizes, const Dims& input, bool align) {
  HostTensor grid(dtype, sizes);
  const int64_t dims = sizes.back();
  for (int64_t i = 0; i < grid.numel(); ++i) {
    const auto size = static_cast<double>(input[input.size() - 1 - static_cast<size_t>(i % dims)]);
    const double whole = static_cast<double>(draw.rng.range(-3, static_cast<int64_t>(size) + 2));
    const double at = whole + (draw.rng.chance(0.5) ? 0.25 : 0.75);
    grid.set(i,
             align ? (size > 1 ? 2 * at / (size - 1) - 1 : whole + 0.25) : (2 * at + 1) / size - 1);
  }
  return grid;
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const bool backward = op.schema.name.ends_with("backward");
  const bool volume = op.schema.name.find("3d") != std::string::npos;
  Dims input{rng.range(1, 3), rng.range(1, 4)};
  Dims grid{input[0]};
  Dims sampled{input[0], input[1]};
  for (int d = 0; d < (volume ? 3 : 2); ++d) {
    input.push_back(rng.range(1, volume ? 5 : 9));
    grid.push_back(rng.range(1, volume ? 4 : 12));
    sampled.push_back(grid.back());
  }
  grid.push_back(volume ? 3 : 2);
  const bool align = rng.chance(0.5);
  c.set("input", draw.tensor(dtype, input));
  c.set("grid", draw.place(grid_of(draw, dtype, grid, input, align)));
  c.set("interpolation_mode", Scalar(rng.range(0, volume ? 1 : 2)));
  c.set("padding_mode", Scalar(rng.range(0, 2)));
  c.set("align_corners", Scalar(align));
  if (backward) {
    c.set("grad_output", draw.tensor(dtype, sampled));
    const bool one = rng.chance(0.3), first = rng.chance(0.5);
    c.set("output_mask", std::vector<bool>{!one || first, !one || !first});
  }
  // Weights are fractions of coordinates near 20, and cubic ones sums of terms above 3; a place of
  // the image, and a slope, add up as many products as there are points and channels.
  const double terms = backward ? static_cast<double>(numel(sampled)) : 16;
  c.tolerance = {{Scale::Largest, 128, terms, 1, nullptr,
                  "weights come from coordinates, whose rounding they keep"}};
  return c;
}

}  // namespace

const FamilyCases& sampling_cases() {
  static constexpr FamilyCases kCases = {"sampling", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
