// Cases of the index family. Where several sources meet in one place without a reduction the result
// is undefined, so such indices are unique.
#include <numeric>

#include "support/cases.h"

namespace ocltensor::testing {
namespace {

constexpr Domain kMoved = {-100, 100, 0, true, true};

bool accumulates(const Case& c) {
  const std::string& n = c.op->schema.name;
  return n == "scatter_add" || n == "scatter_reduce" || n == "index_add" ||
         n == "embedding_dense_backward" ||
         c.op->schema.overload.find("reduce") != std::string::npos;
}

bool accepts(const Operator& op, DType dtype) {
  const std::string& n = op.schema.name;
  if (is_complex(dtype))
    return op.name == "gather.out" || op.name == "index_select.out" ||
           op.name == "index.Tensor_out" || op.name == "scatter.src_out";
  if (n.starts_with("embedding")) return is_floating(dtype);
  const bool arithmetic = n == "scatter_add" || n == "scatter_reduce" || n == "index_add" ||
                          op.schema.overload.find("reduce") != std::string::npos;
  return !arithmetic || dtype != DType::Bool;
}

// At least one element everywhere: indices need a target.
Dims shape(Draw& draw, int64_t low, int64_t high) {
  Dims sizes = draw.shape(low, high);
  for (int64_t& s : sizes) s = std::max<int64_t>(s, 1);
  return sizes;
}

int64_t set_dim(Case& c, Draw& draw, const Dims& sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = rank == 0 ? 0 : draw.rng.range(0, rank - 1);
  c.set("dim", Scalar(rank > 0 && draw.rng.chance(0.3) ? dim - rank : dim));
  return dim;
}

// Index of `sizes` into [0, limit), without repetition along `dim`.
HostTensor unique(Draw& draw, const Dims& sizes, size_t dim, int64_t limit) {
  HostTensor t(DType::Int64, sizes);
  if (sizes.empty()) return t;
  int64_t inner = 1;
  for (size_t d = dim + 1; d < sizes.size(); ++d) inner *= sizes[d];
  std::vector<int64_t> order(static_cast<size_t>(limit));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t s = 0, slices = t.numel() / sizes[dim]; s < slices; ++s) {
    draw.rng.shuffle(order);
    const int64_t start = s / inner * sizes[dim] * inner + s % inner;
    for (int64_t i = 0; i < sizes[dim]; ++i)
      t.set_integer(start + i * inner, order[static_cast<size_t>(i)]);
  }
  return t;
}

Tolerance accumulated(const Case& c, double n) {
  if (!accumulates(c)) return exact();
  return {
      Scale::Largest, 8, n, 1, nullptr, "up to n terms or factors meet in one place, any order"};
}

void gather_scatter(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const bool gather = c.op->schema.name == "gather";
  const Dims self = shape(draw, 0, 4);
  const int64_t dim = set_dim(c, draw, self);
  const int64_t limit = self.empty() ? 1 : self[static_cast<size_t>(dim)];
  const bool repeats = gather || accumulates(c);
  Dims index = self;
  for (size_t d = 0; d < index.size(); ++d)
    index[d] = d == static_cast<size_t>(dim) && repeats ? rng.range(1, self[d] + 3)
                                                        : rng.range(1, self[d]);
  c.set("index", repeats ? draw.indices(index, 0, limit - 1)
                         : draw.place(unique(draw, index, static_cast<size_t>(dim), limit)));
  const bool sums = accumulates(c);
  const Domain domain = sums ? Domain{-3, 3} : kMoved;
  c.set("self", draw.tensor(c.dtype, self, domain));
  if (c.op->schema.input("src") >= 0) {
    Dims src = index;
    for (int64_t& s : src) s += rng.range(0, 2);
    c.set("src", draw.tensor(c.dtype, src, domain));
  }
  if (c.op->schema.input("value") >= 0)
    c.set("value", is_floating(c.dtype) ? Scalar(1.5) : Scalar(int64_t{2}));
  if (c.op->schema.input("reduce") >= 0) {
    const std::vector<std::string> modes =
        c.op->schema.name == "scatter_reduce"
            ? std::vector<std::string>{"sum", "prod", "mean", "amax", "amin"}
            : std::vector<std::string>{"add", "multiply"};
    c.set("reduce", rng.pick(modes));
  }
  if (c.op->schema.input("include_self") >= 0) c.set("include_self", Scalar(rng.chance(0.6)));
  c.tolerance = {accumulated(c, static_cast<double>(numel(index)))};
}

void select_add(Case& c, Draw& draw) {
  const bool add = c.op->schema.name == "index_add";
  const Dims self = shape(draw, add ? 1 : 0, 4);
  const int64_t dim = set_dim(c, draw, self);
  const int64_t limit = self.empty() ? 1 : self[static_cast<size_t>(dim)];
  const int64_t count = self.empty() ? 1 : draw.rng.range(add ? 1 : 0, limit + 4);
  const DType type = draw.rng.chance(0.3) ? DType::Int32 : DType::Int64;
  c.set("index", draw.indices({count}, 0, limit - 1, type));
  c.set("self", draw.tensor(c.dtype, self, add ? Domain{-3, 3} : kMoved));
  if (add) {
    Dims source = self;
    source[static_cast<size_t>(dim)] = count;
    c.set("source", draw.tensor(c.dtype, source, {-3, 3}));
    c.set("alpha", is_floating(c.dtype) ? Scalar(0.5) : Scalar(int64_t{2}));
  }
  c.tolerance = {accumulated(c, static_cast<double>(count))};
}

// Index tensors for some dimensions; negative ones count from the end, as in ATen.
std::vector<TensorPtr> advanced(Draw& draw, const Dims& self, const Dims& common, bool distinct) {
  std::vector<TensorPtr> indices;
  bool any = false;
  const auto rank = static_cast<int64_t>(self.size());
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t n = self[static_cast<size_t>(d)];
    if (distinct ? d == 0 : (draw.rng.chance(0.6) || (d == rank - 1 && !any))) {
      any = true;
      // One unique index suffices: the others may repeat, but then also only once.
      indices.push_back(distinct ? draw.place(unique(draw, common, 0, n))
                                 : draw.indices(common, draw.rng.chance(0.5) ? -n : 0, n - 1));
    } else {
      indices.push_back(nullptr);
    }
  }
  while (indices.size() > 1 && !indices.back() && draw.rng.chance(0.5)) indices.pop_back();
  return indices;
}

void fancy(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const Dims self = shape(draw, 1, 4);
  const bool put = c.op->schema.name != "index";
  const bool accumulate = put && c.dtype != DType::Bool && rng.chance(0.5);
  const bool distinct = put && !accumulate;
  Dims common{rng.range(1, distinct ? self[0] : 6)};
  if (!distinct && rng.chance(0.4)) common.push_back(rng.range(1, 3));
  const auto indices = advanced(draw, self, common, distinct);
  c.set("self", draw.tensor(c.dtype, self, accumulate ? Domain{-3, 3} : kMoved));
  c.set("indices", indices);
  if (put) {
    Case read = make_case(*find_operator("index.Tensor_out"), c.dtype);
    read.set("self", c.get("self"));
    read.set("indices", indices);
    const Dims values = infer(read)[0].sizes;
    c.set("values", draw.tensor(c.dtype, rng.chance(0.6) ? values : draw.broadcastable(values),
                                accumulate ? Domain{-3, 3} : kMoved));
    c.set("accumulate", Scalar(accumulate));
  }
  c.tolerance = {exact()};
  if (accumulate)
    c.tolerance = {{Scale::Largest, 8, static_cast<double>(numel(common)), 1, nullptr,
                    "up to n terms meet in one place, in any order"}};
}

void embedding(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const bool backward = c.op->schema.name != "embedding";
  const int64_t rows = draw.extent(60), width = draw.extent(65);
  Dims index;
  for (int64_t d = rng.range(1, 3); d > 0; --d) index.push_back(rng.range(1, 6));
  c.set("indices", draw.indices(index, 0, rows - 1));
  c.set("padding_idx", Scalar(rng.chance(0.5) ? int64_t{-1} : rng.range(0, rows - 1)));
  if (backward) {
    Dims grad = index;
    grad.push_back(width);
    c.set("grad_output", draw.tensor(c.dtype, grad, {-3, 3}));
    c.set("num_weights", Scalar(rows));
    c.set("scale_grad_by_freq", Scalar(rng.chance(0.3)));
  } else {
    c.set("weight", draw.tensor(c.dtype, {rows, width}, kMoved));
  }
  c.tolerance = {accumulated(c, static_cast<double>(numel(index)))};
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const std::string& n = op.schema.name;
  if (n == "gather" || n.starts_with("scatter")) {
    gather_scatter(c, draw);
  } else if (n == "index_select" || n == "index_add") {
    select_add(c, draw);
  } else if (n.starts_with("embedding")) {
    embedding(c, draw);
  } else if (n.starts_with("nonzero") || n == "masked_select") {
    const Dims sizes = draw.shape();
    c.set("self", draw.tensor(dtype, sizes, {-2, 2, 1, true, true}));
    if (n == "nonzero_static") {
      c.set("size", Scalar(draw.rng.range(0, 2 * numel(sizes) / 3 + 4)));
      c.set("fill_value", Scalar(draw.rng.range(-3, 3)));
    }
    if (n == "masked_select")
      c.set("mask",
            draw.tensor(DType::Bool, draw.rng.chance(0.7) ? sizes : draw.broadcastable(sizes)));
    c.tolerance = {exact()};
  } else {
    fancy(c, draw);
  }
  c.same_type = !accumulates(c) && c.tolerance[0].scale == Scale::Bits;
  return c;
}

}  // namespace

const FamilyCases& index_cases() {
  static constexpr FamilyCases kCases = {"index", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
