// Cases of the attention family: scaled dot product attention with its weights, and fused.
#include <cmath>

#include "support/cases.h"
#include "support/reference.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) { return is_floating(dtype); }

// A bool mask that leaves each query at least one key, or an additive one, of which some rows may
// be a large negative number, up to the lowest, throughout: all keys then have the same weight, as
// not even float64 has room for their scores beside it (beside float16's lowest number it has).
TensorPtr mask(Draw& draw, DType dtype, const Dims& sizes) {
  if (draw.rng.chance(0.5)) {
    if (dtype == DType::Float16 || draw.rng.chance(0.7)) return draw.tensor(dtype, sizes, {-3, 1});
    HostTensor t = draw.values(dtype, sizes, {-3, 1});
    const int64_t row = std::max<int64_t>(1, sizes.back());
    for (int64_t i = 0; i < t.numel(); i += row) {
      if (!draw.rng.chance(0.3)) continue;
      const double low = -largest_finite(dtype) * std::exp2(-10.0 * draw.rng.range(0, 6));
      for (int64_t j = i; j < i + row; ++j) t.set(j, low);
    }
    return draw.place(std::move(t));
  }
  HostTensor t = draw.values(DType::Bool, sizes, {});
  for (int64_t i = 0, n = t.numel(); i < n; i += std::max<int64_t>(1, sizes.back()))
    t.set_integer(i, 1);
  return draw.place(std::move(t));
}

constexpr const char* kForward = "_scaled_dot_product_fused_attention_overrideable.out";

// Of the fused operators, as [B, H, L, S] in float64: the weights, and the rows' log-sum-exp.
struct Weights {
  HostTensor values, sums;
  double operator()(int64_t row, int64_t key) const {
    return values.real(row * values.sizes.back() + key);
  }
};
// The values are the identity matrix, so that the result is the weights themselves.
Weights weights_of(const Case& wide, bool dropped) {
  const Dims& key = std::get<TensorPtr>(wide.get("key"))->value.sizes;
  HostTensor identity(DType::Float64, {key[0], key[1], key[2], key[2]});
  for (int64_t i = 0; i < identity.numel(); ++i)
    identity.set(i, i / key[2] % key[2] == i % key[2] ? 1 : 0);
  Case c = make_case(*find_operator(kForward), DType::Float64);
  for (const char* name : {"query", "key", "attn_bias", "is_causal", "scale"})
    c.set(name, wide.get(name));
  if (dropped)
    for (const char* name : {"dropout_p", "philox_seed", "philox_offset"})
      c.set(name, wide.get(name));
  const Dims strides = contiguous_strides(identity.sizes);
  const int64_t count = identity.numel();
  c.set("value",
        std::make_shared<TensorData>(TensorData{std::move(identity), {strides, 0, count}}));
  std::vector<HostTensor> outs = run_reference(c);
  return {std::move(outs[0]), std::move(outs[1])};
}

// What rounding weights, and in backward the gradients of scores, to 16 bits multiplies.
std::vector<HostTensor> summands(const Case& wide) {
  const auto tensor = [&](const char* name) -> const HostTensor& {
    return std::get<TensorPtr>(wide.get(name))->value;
  };
  const HostTensor &query = tensor("query"), &key = tensor("key"), &value = tensor("value");
  const int64_t heads = query.sizes[1], queries = query.sizes[2], depth = query.sizes[3];
  const int64_t groups = heads / key.sizes[1], keys = key.sizes[2], width = value.sizes[3];
  const Weights kept = weights_of(wide, true);
  // to[row, :] += factor * |from[other, :]|
  const auto add = [](HostTensor& to, int64_t row, double factor, const HostTensor& from,
                      int64_t other, int64_t size) {
    for (int64_t c = 0; c < size; ++c)
      to.set(row * size + c, to.real(row * size + c) + factor * from.magnitude(other * size + c));
  };
  const auto dot = [&](const HostTensor& a, int64_t row, const HostTensor& b, int64_t other) {
    double sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += a.real(row * width + c) * b.real(other * width + c);
    return sum;
  };
  const bool backward = wide.op->name != kForward;
  const auto zeros = [](const Dims& sizes) { return HostTensor(DType::Float64, sizes); };
  if (!backward) {
    std::vector<HostTensor> sums = {zeros({query.sizes[0], heads, queries, width}),
                                    zeros({query.sizes[0], heads, queries})};
    for (int64_t row = 0; row < query.sizes[0] * heads * queries; ++row)
      for (int64_t j = 0; j < keys; ++j)
        add(sums[0], row, kept(row, j), value, row / queries / groups * keys + j, width);
    return sums;
  }
  const HostTensor &grad = tensor("grad_out"), &out = tensor("out"), &given = tensor("logsumexp");
  const Weights all = weights_of(wide, false);
  const double scale = std::get<Scalar>(wide.get("scale")).as_complex().real();
  std::vector<HostTensor> sums = {zeros(query.sizes), zeros(key.sizes), zeros(value.sizes)};
  for (int64_t row = 0; row < query.sizes[0] * heads * queries; ++row)
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t place = row / queries / groups * keys + j;
      const double ratio = std::exp(all.sums.real(row) - given.real(row));
      if (all(row, j) == 0) continue;  // also of rows without any key, whose sum is -infinity
      const double of_score = scale * ratio *
                              std::abs(kept(row, j) * dot(grad, row, value, place) -
                                       all(row, j) * dot(grad, row, out, row));
      add(sums[0], row, of_score, key, place, depth);
      add(sums[1], place, of_score, query, row, depth);
      add(sums[2], place, ratio * kept(row, j), grad, row, width);
    }
  return sums;
}

// Backward takes any `out` and any `logsumexp` above the scores: it is a function of all its
// arguments.
Case make_fused(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const bool backward = op.name.find("backward") != std::string::npos;
  const int64_t limit = draw.size_mode() == SizeMode::Small ? 17 : 40;
  int64_t batch = rng.range(1, 2), key_heads = rng.range(1, 3), queries = draw.extent(limit, true),
          keys = draw.extent(limit), depth = draw.extent(33), width = draw.extent(33);
  const int64_t heads = key_heads * rng.range(1, 2);
  // Kernels for matrix units take heads, and read masks best, of whole vectors.
  const auto whole = [](int64_t size) { return (size + 7) / 8 * 8; };
  if (rng.chance(0.5)) depth = width = whole(depth);
  if (rng.chance(0.4)) keys = whole(keys);
  c.set("query", draw.tensor(dtype, {batch, heads, queries, depth}, {-2, 2}));
  c.set("key", draw.tensor(dtype, {batch, key_heads, keys, depth}, {-2, 2}));
  c.set("value", draw.tensor(dtype, {batch, key_heads, keys, width}, {-2, 2}));
  const int64_t kind = rng.range(0, 2);
  if (kind == 1) c.set("is_causal", Scalar(true));
  if (kind == 2)
    c.set("attn_bias",
          mask(draw, dtype, rng.chance(0.5) ? Dims{queries, keys} : Dims{batch, 1, queries, keys}));
  c.set("scale", Scalar(0.25));
  if (rng.chance(0.3)) {
    c.set("dropout_p", Scalar(0.25));
    c.set("philox_seed", Scalar(rng.range(0, 1 << 30)));
    c.set("philox_offset", Scalar(rng.range(0, 1 << 30)));
  }
  if (backward) {
    c.set("grad_out", draw.tensor(dtype, {batch, heads, queries, width}, {-2, 2}));
    c.set("out", draw.tensor(dtype, {batch, heads, queries, width}, {-2, 2}));
    const DType sums = compute_type(dtype);
    c.set("logsumexp", draw.tensor(sums, {batch, heads, queries}, {20, 40}));
  }
  c.tolerance = {{Scale::Largest, 64, static_cast<double>(depth + keys + queries), 1, nullptr,
                  "scores of magnitude 30 go through exp: their rounding is multiplied by it"}};
  // ATen's own kernels have 16-bit weights, and so do those for matrix units: --rounded-weights.
  if (dtype == DType::Float16 || dtype == DType::BFloat16) c.summands = summands;
  return c;
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  if (op.name.find("fused") != std::string::npos) return make_fused(op, dtype, draw);
  Case c = make_case(op, dtype);
  auto& rng = draw.rng;
  const int64_t limit = draw.size_mode() == SizeMode::Small ? 17 : 40;
  int64_t batch = rng.range(1, 2), heads = rng.range(1, 4), queries = draw.extent(limit),
          keys = draw.extent(limit), width = draw.extent(33), value_width = draw.extent(33);
  const bool grouped = rng.chance(0.2);
  const int64_t key_heads = heads;
  if (grouped) heads *= 2;
  c.set("query", draw.tensor(dtype, {batch, heads, queries, width}, {-2, 2}));
  c.set("key", draw.tensor(dtype, {batch, key_heads, keys, width}, {-2, 2}));
  c.set("value", draw.tensor(dtype, {batch, key_heads, keys, value_width}, {-2, 2}));
  c.set("enable_gqa", Scalar(grouped));
  const int64_t kind = rng.range(0, 2);
  if (kind == 1) c.set("is_causal", Scalar(true));
  if (kind == 2)
    c.set("attn_mask",
          mask(draw, dtype, rng.chance(0.5) ? Dims{queries, keys} : Dims{batch, 1, queries, keys}));
  if (rng.chance(0.3)) c.set("scale", Scalar(0.25));
  c.tolerance = {{Scale::Largest, 64, static_cast<double>(width + keys), 1, nullptr,
                  "scores of magnitude 10 go through exp: their rounding is multiplied by it"}};
  return c;
}

}  // namespace

const FamilyCases& attention_cases() {
  static constexpr FamilyCases kCases = {"attention", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
