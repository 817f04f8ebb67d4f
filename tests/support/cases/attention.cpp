// Cases of the attention family: scaled dot product attention with its weights, and fused.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) { return is_floating(dtype); }

// A bool mask that leaves each query at least one key, or an additive one.
TensorPtr mask(Draw& draw, DType dtype, const Dims& sizes) {
  if (draw.rng.chance(0.5)) return draw.tensor(dtype, sizes, {-3, 1});
  HostTensor t = draw.values(DType::Bool, sizes, {});
  for (int64_t i = 0, n = t.numel(); i < n; i += std::max<int64_t>(1, sizes.back()))
    t.set_integer(i, 1);
  return draw.place(std::move(t));
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

const FamilyCases kAttentionCases = {"attention", accepts, make};

}  // namespace ocltensor::testing
