// Cases of the upsample family.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool has(const Operator& op, const char* part) {
  return op.schema.name.find(part) != std::string::npos;
}

bool accepts(const Operator& op, DType dtype) {
  const bool smooth = has(op, "_aa");
  // ATen's nearest kernels take uint8 images too; its antialiased ones no halves.
  if (smooth) return dtype == DType::Float32 || dtype == DType::Float64;
  return is_floating(dtype) ||
         (has(op, "nearest") && !op.schema.name.ends_with("backward") && dtype == DType::UInt8);
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const bool backward = op.schema.name.ends_with("backward");
  const bool nearest = has(op, "nearest");
  const size_t dims = has(op, "1d") ? 1 : has(op, "2d") ? 2 : 3;
  Dims in{rng.range(1, 3), rng.range(1, 4)};
  for (size_t d = 0; d < dims; ++d) in.push_back(rng.range(1, dims == 3 ? 7 : 17));
  // Long rows: CPU drivers keep up to 1024 elements in buffers, or take 16 side by side.
  if (rng.chance(0.15)) {
    in = Dims{1, rng.range(1, 2)};
    for (size_t d = 1; d < dims; ++d) in.push_back(rng.range(1, 3));
    in.push_back(rng.range(480, 540));
  }
  // Powers of two as factors, or any size: then scales are left to the sizes.
  const bool doubled = rng.chance(0.4);
  std::vector<int64_t> out;
  for (size_t d = 0; d < dims; ++d)
    out.push_back(doubled ? in[2 + d] * 2 : rng.range(1, dims == 3 ? 9 : 25));
  // PyTorch 2.13's own antialiased images of one column are wrong where rows are resampled, too.
  if (has(op, "_aa")) out[1] = std::max<int64_t>(out[1], 2);
  c.set("output_size", out);
  if (backward) {
    Dims large{in[0], in[1]};
    for (const int64_t size : out) large.push_back(size);
    c.set("input_size", list_of(in));
    c.set("grad_output", draw.tensor(dtype, large));
  } else {
    c.set("self", draw.tensor(dtype, in, {-4, 100}));
  }
  if (op.schema.input("align_corners") >= 0) c.set("align_corners", Scalar(rng.chance(0.5)));
  if (doubled && rng.chance(0.5))
    for (const char* scale : {"scales", "scales_d", "scales_h", "scales_w"})
      if (op.schema.input(scale) >= 0) c.set(scale, Scalar(2.0));
  // Weights are fractions of coordinates in the source. Without float64 a coordinate comes
  // from three roundings, 1.5 eps of it, and two weights differ by that: 64 is enough for the short
  // rows, and what long ones add to it is 2 * 1.5 eps a column.
  const double columns = nearest ? 0 : static_cast<double>(in[1 + dims]);
  c.tolerance = {nearest && !backward
                     ? exact()
                     : Tolerance{Scale::Largest, 64 + 1.5 * std::max(0.0, columns - 17), 4, 1,
                                 nullptr,
                                 "weights come from coordinates, whose rounding they keep"}};
  return c;
}

}  // namespace

const FamilyCases& upsample_cases() {
  static constexpr FamilyCases kCases = {"upsample", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
