// Cases of the sort family. Where ties make the positions ambiguous, values are distinct.
#include <limits>
#include <numeric>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool is_one_of_rows(const Operator& op) {
  return op.schema.name == "kthvalue" || op.schema.name.ends_with("median");
}

bool is_histogram(const Operator& op) { return op.schema.name.starts_with("_histogramdd"); }

bool accepts(const Operator& op, DType dtype) {
  if (op.schema.name == "_ocl_rows_of") return dtype == DType::Int32 || dtype == DType::Int64;
  if (is_histogram(op)) return dtype == DType::Float32 || dtype == DType::Float64;
  if (op.schema.name == "topk" || is_one_of_rows(op))
    return dtype != DType::Bool && !is_complex(dtype);
  return !is_complex(dtype);
}

// Along `dim`, each slice is a shuffled range of integers without repetition.
HostTensor distinct(Draw& draw, DType dtype, const Dims& sizes, size_t dim) {
  HostTensor t(dtype, sizes);
  if (sizes.empty()) {
    t.set(0, 3);
    return t;
  }
  const int64_t length = sizes[dim];
  int64_t inner = 1;
  for (size_t d = dim + 1; d < sizes.size(); ++d) inner *= sizes[d];
  std::vector<int64_t> order(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), dtype == DType::UInt8 ? 0 : -length / 2);
  const int64_t slices = length == 0 ? 0 : t.numel() / length;
  for (int64_t s = 0; s < slices; ++s) {
    draw.rng.shuffle(order);
    const int64_t start = s / inner * length * inner + s % inner;
    for (int64_t i = 0; i < length; ++i)
      t.set_integer(start + i * inner, order[static_cast<size_t>(i)]);
  }
  return t;
}

// Rows of multiples of 1/4 in ascending order, with ties; values between and beyond them.
Case make_search(Case c, DType dtype, Draw& draw) {
  auto& rng = draw.rng;
  Dims sizes = draw.shape(1, 4);
  const bool shared = rng.chance(0.5);
  Dims sequence = shared ? Dims{sizes.back()} : sizes;
  const int64_t n = rng.range(0, 70);
  sequence.back() = n;
  HostTensor sorted(dtype, sequence);
  for (int64_t row = 0; n > 0 && row < sorted.numel() / n; ++row) {
    int64_t v = dtype == DType::UInt8 ? 0 : -rng.range(0, 20);
    for (int64_t i = 0; i < n; ++i, v += rng.chance(0.4) ? 1 : 0)
      if (is_floating(dtype))
        sorted.set(row * n + i, static_cast<double>(v) / 4);
      else
        sorted.set_integer(row * n + i, dtype == DType::Bool ? v > 0 : v);
  }
  c.set("sorted_sequence", draw.place(std::move(sorted)));
  c.set("self", draw.tensor(dtype, sizes, {-9, 12, is_floating(dtype) ? 0.25 : 1, true, true}));
  c.set("out_int32", Scalar(rng.chance(0.5)));
  if (rng.chance(0.5)) c.set("right", Scalar(true));
  c.same_type = true;
  c.tolerance = {exact()};
  return c;
}

// Distinct numbers, with one NaN at times; long rows are selected from by several digits.
Case make_one_of_rows(Case c, DType dtype, Draw& draw) {
  auto& rng = draw.rng;
  Dims sizes = draw.shape(0, 5);
  for (int64_t& s : sizes) s = std::clamp<int64_t>(s, 1, size_of(dtype) <= 2 ? 200 : 5000);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = rank == 0 ? 0 : rng.range(0, rank - 1);
  HostTensor self = distinct(draw, dtype, sizes, static_cast<size_t>(dim));
  if (is_floating(dtype) && rng.chance(0.3))
    self.set(rng.range(0, self.numel() - 1), std::numeric_limits<double>::quiet_NaN());
  c.set("self", draw.place(std::move(self)));
  c.set("dim", Scalar(rank > 0 && rng.chance(0.3) ? dim - rank : dim));
  c.set("keepdim", Scalar(rng.chance(0.5)));
  if (c.op->schema.input("k") >= 0)
    c.set("k", Scalar(rng.range(1, rank == 0 ? 1 : sizes[static_cast<size_t>(dim)])));
  c.same_type = true;
  c.tolerance = {exact()};
  return c;
}

// Rows of up to 16 small whole numbers, of which some are more frequent than others, or long ones
// without equals: ATen's sort of longer rows is unstable, and with it the index.
Case make_mode(Case c, DType dtype, Draw& draw) {
  auto& rng = draw.rng;
  const bool repeats = dtype == DType::Bool || (rng.chance(0.7));
  Dims sizes = draw.shape(0, 5);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = rank == 0 ? 0 : rng.range(0, rank - 1);
  for (int64_t& s : sizes)
    s = std::clamp<int64_t>(s, 1, repeats ? 16 : size_of(dtype) <= 2 ? 200 : 5000);
  c.set("self", repeats ? draw.tensor(dtype, sizes, {-9, 9, 1, false, false})
                        : draw.place(distinct(draw, dtype, sizes, static_cast<size_t>(dim))));
  c.set("dim", Scalar(rank > 0 && rng.chance(0.3) ? dim - rank : dim));
  c.set("keepdim", Scalar(rng.chance(0.5)));
  c.same_type = true;
  c.tolerance = {exact()};
  return c;
}

// Edges and points are multiples of 1/4: some points lie on edges, some outside of all.
Case make_histogram(Case c, DType dtype, Draw& draw) {
  auto& rng = draw.rng;
  const int64_t points = draw.extent(3000, true);
  const int64_t dims = rng.range(1, 6);
  std::vector<TensorPtr> edges;
  for (int64_t d = 0; d < dims; ++d) {
    HostTensor edge(dtype, {rng.range(2, dims > 3 ? 4 : 12)});
    double at = -static_cast<double>(rng.range(2, 24)) / 4;
    for (int64_t i = 0; i < edge.numel(); ++i) {
      edge.set(i, at);
      at += static_cast<double>(rng.range(1, 12)) / 4;
    }
    edges.push_back(draw.place(std::move(edge)));
  }
  const Dims sizes = rng.chance(0.3) ? Dims{points, 2, dims} : Dims{points, dims};
  c.set("self", draw.tensor(dtype, sizes, {-8, 12, 0.25, true, false}));
  c.set("bins", edges);
  if (rng.chance(0.5))
    c.set("weight",
          draw.tensor(dtype, Dims(std::span<const int64_t>(sizes).first(sizes.size() - 1)),
                      {0.25, 2}));
  c.set("density", Scalar(rng.chance(0.5)));
  c.tolerance = {{Scale::Largest, 8, static_cast<double>(2 * points + 1), 1, nullptr, kWhySum}};
  return c;
}

// Offsets that ascend from 0 or a little later, some of them equal; elements may lie behind the
// last.
Case make_rows(Case c, DType dtype, Draw& draw) {
  auto& rng = draw.rng;
  Dims sizes = draw.shape(1, 3);
  for (int64_t& s : sizes) s = std::clamp<int64_t>(s, 1, size_of(dtype) <= 2 ? 12 : 900);
  HostTensor offsets(dtype, sizes);
  const bool from_start = rng.chance(0.5);
  int64_t count = 0;
  for (int64_t i = 0, at = 0; i < offsets.numel(); ++i) {
    if (i % sizes.back() == 0) at = from_start ? 0 : rng.range(0, 2);
    offsets.set_integer(i, at);
    count = std::max(count, at);
    at += rng.range(0, 9);
  }
  c.set("offsets", draw.place(std::move(offsets)));
  c.set("count", Scalar(count + rng.range(0, 5)));
  c.set("from_start", Scalar(from_start));
  c.tolerance = {exact()};
  return c;
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  if (op.schema.name == "_ocl_rows_of") return make_rows(std::move(c), dtype, draw);
  if (op.schema.name == "mode") return make_mode(std::move(c), dtype, draw);
  if (is_histogram(op)) return make_histogram(std::move(c), dtype, draw);
  if (is_one_of_rows(op)) return make_one_of_rows(std::move(c), dtype, draw);
  if (op.schema.name == "searchsorted") return make_search(std::move(c), dtype, draw);
  auto& rng = draw.rng;
  Dims sizes = draw.shape(0, 5);
  // 8-bit types have 256 distinct values, bfloat16 as many exact integers.
  for (int64_t& s : sizes)
    if (size_of(dtype) <= 2) s = std::min<int64_t>(s, 200);
  const bool topk = op.schema.name == "topk";
  // Few of a long row: CPU drivers select from parts of it.
  const bool few = topk && size_of(dtype) > 2 && rng.chance(0.2);
  if (few) sizes = {rng.range(1, 3), rng.range(9000, 14000)};
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = few ? 1 : rank == 0 ? 0 : rng.range(0, rank - 1);
  c.set("dim", Scalar(rank > 0 && rng.chance(0.3) ? dim - rank : dim));
  const bool stable = !topk && (dtype == DType::Bool || rng.chance(0.5));
  c.set("self", stable ? draw.tensor(dtype, sizes, {-9, 9, 1, true, true})
                       : draw.place(distinct(draw, dtype, sizes, static_cast<size_t>(dim))));
  if (!topk) {
    if (stable || rng.chance(0.5)) c.set("stable", Scalar(stable));
    c.set("descending", Scalar(rng.chance(0.5)));
  } else {
    const int64_t most = rank == 0 ? 1 : sizes[static_cast<size_t>(dim)];
    c.set("k", Scalar(rng.range(0, few ? 70 : most)));
    c.set("largest", Scalar(rng.chance(0.5)));
  }
  c.same_type = true;
  c.tolerance = {exact()};
  return c;
}

}  // namespace

const FamilyCases& sort_cases() {
  static constexpr FamilyCases kCases = {"sort", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
