// Cases of the upsample family.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator& op, DType dtype) {
  // ATen's nearest kernels take uint8 images too.
  return is_floating(dtype) || (op.schema.name == "upsample_nearest2d" && dtype == DType::UInt8);
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const bool backward = op.schema.name.ends_with("backward");
  const bool nearest = op.schema.name.find("nearest") != std::string::npos;
  Dims in = draw.fixed ? *draw.fixed
                       : Dims{rng.range(1, 3), rng.range(1, 4), rng.range(1, 17), rng.range(1, 17)};
  // CPU drivers keep rows of up to 1024 elements in buffers.
  if (!draw.fixed && rng.chance(0.15))
    in = {1, rng.range(1, 2), rng.range(1, 3), rng.range(480, 540)};
  // Powers of two as factors, or any size: then scales are left to the sizes.
  const bool doubled = draw.fixed || rng.chance(0.4);
  const std::vector<int64_t> out = doubled
                                       ? std::vector<int64_t>{in[2] * 2, in[3] * 2}
                                       : std::vector<int64_t>{rng.range(1, 25), rng.range(1, 25)};
  c.set("output_size", out);
  if (backward) {
    c.set("input_size", list_of(in));
    c.set("grad_output", draw.tensor(dtype, {in[0], in[1], out[0], out[1]}));
  } else {
    c.set("self", draw.tensor(dtype, in, {-4, 100}));
  }
  if (op.schema.input("align_corners") >= 0) c.set("align_corners", Scalar(rng.chance(0.5)));
  if (doubled && rng.chance(0.5)) {
    c.set("scales_h", Scalar(2.0));
    c.set("scales_w", Scalar(2.0));
  }
  // Linear weights are fractions of coordinates in the source. Without float64 a coordinate comes
  // from three roundings, 1.5 eps of it, and two weights differ by that: 64 is enough for the short
  // rows, and what long ones add to it is 2 * 1.5 eps a column.
  const double columns = nearest ? 0 : static_cast<double>(in[3]);
  c.tolerance = {nearest && !backward
                     ? exact()
                     : Tolerance{Scale::Largest, 64 + 1.5 * std::max(0.0, columns - 17), 4, 1,
                                 nullptr,
                                 "weights come from coordinates, whose rounding they keep"}};
  return c;
}

const BenchShape kBench[] = {{"features", {8, 64, 64, 64}}, {"image", {8, 3, 256, 256}}};

}  // namespace

const FamilyCases kUpsampleCases = {"upsample", accepts, make, kBench};

}  // namespace ocltensor::testing
