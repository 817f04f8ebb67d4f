// Cases of the copy family: conversions, fills, constructors, data movement.
#include <algorithm>
#include <cstdlib>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator& op, DType dtype) {
  const std::string& n = op.schema.name;
  if (n == "arange" || n == "linspace") return dtype != DType::Bool && !is_complex(dtype);
  if (n == "_ocl_pad_backward") return is_floating(dtype) || is_complex(dtype);
  return n != "eye" || !is_complex(dtype);
}

// Values that every target type can hold after truncation.
Domain convertible(DType to) {
  if (to == DType::UInt8 || to == DType::Bool) return {0, 200, 0.25, false, false};
  if (to == DType::Int8) return {-100, 100, 0.25, false, false};
  if (is_integral(to, true)) return {-100, 100, 0, false, false};
  return {-100, 100, 0, true, false};
}

void make_copy(Case& c, Draw& draw) {
  const Dims sizes = draw.shape();
  const DType from = draw.rng.chance(0.3) ? c.dtype : draw.rng.pick(kTestedTypes);
  Domain d = convertible(is_complex(c.dtype) ? from : c.dtype);
  if (from == c.dtype) d = {-100, 100, 0, true, true};
  c.set("self", draw.contiguous(draw.values(c.dtype, sizes, {})));
  c.set("src", draw.tensor(from, draw.rng.chance(0.7) ? sizes : draw.broadcastable(sizes), d));
}

void make_cat(Case& c, Draw& draw) {
  Dims sizes = draw.shape(1, 5);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = draw.rng.range(0, rank - 1);
  std::vector<TensorPtr> tensors;
  for (int64_t k = draw.rng.range(1, 5); k > 0; --k) {
    if (k > 1) sizes[static_cast<size_t>(dim)] = draw.extent(20, true);
    // An empty vector fits anything, beside another.
    const bool legacy = k > 1 && draw.rng.chance(0.08);
    tensors.push_back(draw.tensor(c.dtype, legacy ? Dims{0} : sizes, {-100, 100, 0, true, true}));
  }
  c.set("tensors", tensors);
  c.set("dim", Scalar(draw.rng.chance(0.5) ? dim : dim - rank));
}

void make_range(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const bool linear = c.op->schema.name == "linspace";
  const bool integral = is_integral(c.dtype, true);
  const int64_t limit = c.dtype == DType::UInt8 || c.dtype == DType::Int8 ? 40 : 300;
  const int64_t start = rng.range(c.dtype == DType::UInt8 ? 0 : -20, 20);
  const int64_t count = draw.extent(limit);
  const int64_t step = rng.range(1, 2);
  // Multiples of 1/4 are exact in every type.
  const auto number = [&](int64_t v) {
    return integral ? Scalar(v) : Scalar(static_cast<double>(v) / 4);
  };
  c.set("start", number(start));
  c.set("end", number(start + count * step));
  if (linear)
    c.set("steps", Scalar(integral ? count + 1 : draw.extent(limit)));
  else
    c.set("step", number(step));
  c.out_dtype = c.dtype;
  c.tolerance = {{linear ? Scale::Largest : Scale::Exact, linear ? 4.0 : 0.0, 1, 1, nullptr,
                  "start + i * step in the compute type"}};
}

void make_moves(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const std::string& n = c.op->schema.name;
  const bool triangle = n == "tril" || n == "triu";
  const Dims sizes = draw.shape(triangle ? 2 : 0);
  const auto rank = static_cast<int64_t>(sizes.size());
  c.set("self", draw.tensor(c.dtype, sizes, {-100, 100, 0, true, true}));
  if (n == "fill") {
    c.set("value", is_complex(c.dtype)    ? Scalar(std::complex<double>(rng.range(-9, 9), 0.5))
                   : is_floating(c.dtype) ? Scalar(rng.uniform(-8, 8))
                                          : Scalar(rng.range(0, 100)));
  } else if (triangle) {
    c.set("diagonal", Scalar(rng.range(-3, 3)));
  } else {
    std::vector<int64_t> dims, shifts;
    for (int64_t d = 0; d < rank; ++d)
      if (rng.chance(0.5)) {
        dims.push_back(rng.chance(0.5) ? d : d - rank);
        shifts.push_back(rng.range(-7, 7));
      }
    rng.shuffle(dims);
    if (n == "roll") c.set("shifts", dims.empty() ? std::vector<int64_t>{3} : shifts);
    c.set("dims", dims);
  }
}

// Of more elements than there are, too, and negative, as long as something is left.
void make_pad(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const bool backward = c.op->schema.name == "_ocl_pad_backward", reflects = rng.chance(0.5);
  const int64_t dims = rng.range(1, 3);
  Dims sizes, padded;
  for (int64_t d = rng.range(1, 2); d > 0; --d)
    sizes.push_back(draw.extent(dims == 1 ? 12 : 4, sizes.empty()));
  padded = sizes;
  std::vector<int64_t> padding;
  int64_t terms = 1;
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t size = draw.extent(dims == 3 ? 9 : 40), most = reflects ? size - 1 : 9;
    const auto side = [&](int64_t least) { return rng.range(rng.chance(0.3) ? least : 0, most); };
    const int64_t before = side(1 - size), after = std::max(side(1 - size), 1 - size - before);
    sizes.push_back(size);
    padded.push_back(size + before + after);
    padding.insert(padding.begin(), {before, after});
    terms *= reflects ? 3 : std::abs(before) + std::abs(after) + 1;
  }
  c.set("padding", padding);
  c.set("mode", std::string(reflects ? "reflect" : "replicate"));
  c.same_type = !backward;
  if (!backward) {
    c.set("self", draw.tensor(c.dtype, sizes, {-100, 100, 0, true, true}));
  } else {
    c.set("grad_output", draw.tensor(c.dtype, padded));
    c.tolerance = {sum_of(static_cast<double>(terms))};
  }
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const std::string& n = op.schema.name;
  c.same_type = true;
  c.tolerance = {exact()};
  if (n == "copy") {
    make_copy(c, draw);
  } else if (n == "cat") {
    make_cat(c, draw);
  } else if (n == "arange" || n == "linspace") {
    make_range(c, draw);
  } else if (n == "eye") {
    c.set("n", Scalar(draw.extent(40)));
    c.set("m", Scalar(draw.extent(40)));
    c.out_dtype = dtype;
  } else if (n.starts_with("_ocl_pad")) {
    make_pad(c, draw);
  } else {
    make_moves(c, draw);
  }
  return c;
}

}  // namespace

const FamilyCases& copy_cases() {
  static constexpr FamilyCases kCases = {"copy", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
