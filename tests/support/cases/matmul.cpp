// Cases of the matmul family: matrix and vector products.
#include <algorithm>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool is_int8_product(const Operator& op) { return op.schema.name == "_int_mm"; }
bool is_scaled(const Operator& op) { return op.schema.name == "_ocl_scaled_mm"; }
bool chooses_type(const Operator& op) { return op.schema.full_name().ends_with(".dtype_out"); }
bool accepts(const Operator& op, DType dtype) {
  if (is_scaled(op) || op.schema.name == "_addmm_activation") return is_floating(dtype);
  if (op.schema.name == "_ocl_grouped_mm")
    return is_floating(dtype) && compute_type(dtype) == DType::Float32;
  return is_int8_product(op) ? dtype == DType::Int8 : dtype != DType::Bool;
}

// Sizes of one product: batch, m, n, k.
struct Sizes {
  int64_t b, m, n, k;
};

Sizes choose(Draw& draw) {
  const int64_t limit = draw.size_mode() == SizeMode::Large    ? 300
                        : draw.size_mode() == SizeMode::Medium ? 90
                                                               : 33;
  return {draw.rng.range(1, 4), draw.extent(limit, true), draw.extent(limit, true),
          draw.extent(limit, true)};
}

Scalar factor(Draw& draw, DType dtype) {
  if (is_complex(dtype) && draw.rng.chance(0.5)) return std::complex<double>(0.5, -1.5);
  const bool whole = is_integral(dtype, true);
  if (whole && draw.rng.chance(0.3)) return Scalar(1.5);  // truncated
  if (whole) return Scalar(draw.rng.range(0, 2));
  constexpr double kFactors[] = {0, 1, 0.5, -1.5};
  return Scalar(draw.rng.pick(kFactors));
}

// Parts of the rows, of the columns, or of the terms, some of them empty; the last may end early.
void grouped(Case& c, Draw& draw, const Sizes& s) {
  const int64_t groups = draw.rng.range(1, 6), form = draw.rng.range(0, 2);
  const int64_t size = form == 0 ? s.m : form == 1 ? s.n : s.k;
  std::vector<int64_t> ends;
  for (int64_t g = 0; g < groups; ++g) ends.push_back(draw.rng.range(0, size));
  if (draw.rng.chance(0.5)) ends.back() = size;
  std::ranges::sort(ends);
  HostTensor offs(DType::Int32, {groups});
  for (int64_t g = 0; g < groups; ++g) offs.set_integer(g, ends[static_cast<size_t>(g)]);
  const Domain d{-3, 3, 0, false, false};
  const auto shape = [&](bool is_matrix, int64_t rows, int64_t columns) {
    return is_matrix ? Dims{rows, columns} : Dims{groups, rows, columns};
  };
  c.set("self", draw.tensor(c.dtype, shape(form != 1, s.m, s.k), d));
  c.set("mat2", draw.tensor(c.dtype, shape(form != 0, s.k, s.n), d));
  c.set("offs", draw.place(std::move(offs)));
  c.tolerance = {sum_of(static_cast<double>(s.k) + 1)};
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const Sizes s = choose(draw);
  if (op.schema.name == "_ocl_grouped_mm") {
    grouped(c, draw, s);
    return c;
  }
  const std::string& n = op.schema.name;
  const Domain d =
      is_int8_product(op) ? Domain{-128, 127, 0, false, false} : Domain{-3, 3, 0, false, false};
  const bool batched = n == "bmm" || n == "baddbmm";
  const bool vector = n == "mv" || n == "addmv";
  const bool dot = n == "dot";
  const auto shape = [&](int64_t rows, int64_t columns) {
    return batched ? Dims{s.b, rows, columns} : Dims{rows, columns};
  };
  const bool added = n.starts_with("add") || n.starts_with("badd") || n == "_addmm_activation";
  const size_t at = added ? 1 : 0;
  const bool is_of_bytes = is_scaled(op) && draw.rng.chance(0.7);
  DType result_type = dtype;
  if (chooses_type(op)) {
    if (size_of(dtype) == 2 && is_floating(dtype) && draw.rng.chance(0.8))
      result_type = DType::Float32;
    c.set("out_dtype", result_type);
  }
  c.args[at] = draw.tensor(dtype, dot ? Dims{s.k} : shape(s.m, s.k), d);
  c.args[at + 1] = draw.tensor(is_of_bytes ? DType::Int8 : dtype,
                               dot || vector ? Dims{s.k} : shape(s.k, s.n), d);
  if (is_scaled(op)) {
    const Dims result{s.m, s.n};
    const DType type = draw.rng.chance(0.3) ? DType::Float32 : dtype;
    c.set("scales", draw.tensor(type, draw.rng.chance(0.6) ? Dims{s.n} : draw.broadcastable(result),
                                Domain{-0.5, 0.5, 0, false, false}));
  }
  if (added) {
    const Dims result = vector ? Dims{s.m} : shape(s.m, s.n);
    const DType self_type = result_type != dtype && draw.rng.chance(0.5) ? dtype : result_type;
    c.set("self",
          draw.tensor(self_type, draw.rng.chance(0.5) ? result : draw.broadcastable(result), d));
    c.set("beta", factor(draw, dtype));
    c.set("alpha", factor(draw, dtype));
  }
  c.tolerance = {sum_of(static_cast<double>(s.k) + 1)};
  return c;
}

}  // namespace

const FamilyCases& matmul_cases() {
  static constexpr FamilyCases kCases = {"matmul", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
