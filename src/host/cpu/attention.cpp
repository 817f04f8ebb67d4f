// Scaled dot product attention, with its weights and fused: softmax(query key^T scale + mask)
// value. A row whose every score is -inf has weights 0.
#include <cmath>

#include "call.h"
#include "draw.h"
#include "matmul.h"
#include "special.h"

namespace ocltensor::cpu {
namespace {

using Values = std::vector<double>;

// The batch dimensions broadcast, with key and value heads repeated where query heads share them.
Values batched(const CpuCall& call, Arg a, std::span<const int64_t> batch, bool shared_heads) {
  View v = call.args.tensor(a);
  Values values = read<double>(v);
  View dense = v;
  dense.type = DType::Float64;
  dense.data = reinterpret_cast<std::byte*>(values.data());  // NOLINT: read back as float64
  dense.strides = contiguous_strides(v.sizes);
  if (shared_heads) {  // [.., heads, L, E] as [.., heads, repeat = 0 stride, L, E]
    const size_t head = dense.sizes.size() - 3;
    const int64_t repeat = batch.back() / dense.sizes[head];
    dense.sizes.insert(head + 1, repeat);
    dense.strides.insert(head + 1, 0);
    values = read<double>(dense);
    dense.sizes.erase(head + 1);
    dense.sizes[head] *= repeat;
    dense.data = reinterpret_cast<std::byte*>(values.data());  // NOLINT
    dense.strides = contiguous_strides(dense.sizes);
  }
  Dims target(batch);
  target.push_back(v.sizes[v.sizes.size() - 2]);
  target.push_back(v.sizes.back());
  return read<double>(dense.broadcast_to(target));
}

void add_mask(const CpuCall& call, Arg a, const Dims& sizes, Values& scores) {
  const auto mask = call.args.optional_tensor(a);
  if (!mask) return;
  const auto values = read<double>(View(*mask).broadcast_to(sizes));
  const bool truth = mask->dtype() == DType::Bool;
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] += truth ? (values[i] != 0 ? 0 : -kInfinity) : values[i];
}

void softmax_rows(Values& scores, int64_t length) {
  for (auto row = scores.begin(); row != scores.end(); row += length) {
    double top = -kInfinity;
    for (int64_t i = 0; i < length; ++i) top = special::maximum(top, row[i]);
    double sum = 0;
    for (int64_t i = 0; i < length; ++i)
      sum += row[i] = top == -kInfinity ? 0 : std::exp(row[i] - top);
    for (int64_t i = 0; i < length; ++i) row[i] = sum == 0 ? 0 : row[i] / sum;
  }
}

// Drops weights by the mask or at random. Returns the factor for the result that makes up for the
// dropped weights; 1 if the other weights are scaled already.
double drop(const CpuCall& call, const Dims& sizes, Values& weights, DType type) {
  const double p = call.args.real(Arg::dropout_p);
  if (p <= 0) return 1;
  const double factor = p == 1 ? 0 : 1 / (1 - p);
  if (const auto given = call.args.optional_tensor(Arg::dropout_mask)) {
    const auto kept = read<double>(View(*given).broadcast_to(sizes));
    for (size_t i = 0; i < weights.size(); ++i)
      if (kept[i] == 0) weights[i] = 0;
    return factor;
  }
  const auto draws = draw_uniform(nullptr, static_cast<int64_t>(weights.size()), type);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = draws[i] >= p ? weights[i] * factor : 0;
  return 1;
}

void attention(const CpuCall& call) {
  const View query = call.args.tensor(Arg::query);
  const Dims& output_sizes = call.specs[0].sizes;
  const Dims& weight_sizes = call.specs[1].sizes;
  const int64_t rows = weight_sizes[weight_sizes.size() - 2];
  const int64_t length = weight_sizes.back();
  const int64_t depth = query.sizes.back();
  const int64_t width = output_sizes.back();
  const auto batch_of = [](const Dims& d) { return std::span(d.data(), d.size() - 2); };
  const bool shared = call.args.boolean(Arg::enable_gqa);
  const Values q = batched(call, Arg::query, batch_of(weight_sizes), false);
  const Values k = batched(call, Arg::key, batch_of(weight_sizes), shared);
  const Values v = batched(call, Arg::value, batch_of(output_sizes), shared);
  const double scale =
      call.args.optional_real(Arg::scale).value_or(1 / std::sqrt(static_cast<double>(depth)));

  Values scores(static_cast<size_t>(numel(weight_sizes)));
  for (int64_t b = 0; b < numel(batch_of(weight_sizes)); ++b)
    multiply(q.data() + b * rows * depth, k.data() + b * length * depth,
             scores.data() + b * rows * length, rows, length, depth, {.b_transposed = true});
  for (double& s : scores) s *= scale;
  if (call.args.boolean(Arg::is_causal))
    for (size_t i = 0; i < scores.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (at % length > at / length % rows) scores[i] = -kInfinity;
    }
  add_mask(call, Arg::attn_mask, weight_sizes, scores);
  if (length > 0) softmax_rows(scores, length);
  const double factor = drop(call, weight_sizes, scores, query.type);
  if (call.wants(1)) write(call.out(1), scores);

  View weights;  // of the scores, broadcast where value has more batches than query and key
  weights.data = reinterpret_cast<std::byte*>(scores.data());  // NOLINT: read back as float64
  weights.type = DType::Float64;
  weights.sizes = weight_sizes;
  weights.strides = contiguous_strides(weight_sizes);
  Dims wide(batch_of(output_sizes));
  wide.push_back(rows);
  wide.push_back(length);
  const Values w = read<double>(weights.broadcast_to(wide));
  Values result(static_cast<size_t>(numel(output_sizes)));
  for (int64_t b = 0; b < numel(batch_of(output_sizes)); ++b)
    multiply(w.data() + b * rows * length, v.data() + b * length * width,
             result.data() + b * rows * width, rows, width, length);
  for (double& r : result) r *= factor;
  write(call.out(0), result);
}

// The fused operators: sizes, operands and weights in double.
struct Fused {
  Dims query_batch;  // [B, H]
  int64_t queries, keys, depth, width;
  double scale;
  Values q, k, v;  // key heads repeated
  Values scores;   // [B, H, L, S] with scale and mask
  Values factors;  // of dropout; empty without
  int64_t batch() const { return numel(query_batch); }
};

Values dropout_factors(const Fused& f, double p, uint64_t seed, uint64_t offset) {
  Values factors;
  if (p <= 0) return factors;
  const uint32_t limit = philox_dropout_limit(p);
  const auto matrices = static_cast<uint64_t>(f.batch());
  const auto queries = static_cast<uint64_t>(f.queries), keys = static_cast<uint64_t>(f.keys);
  for (uint64_t matrix = 0; matrix < matrices; ++matrix) {
    const uint64_t counter = offset + matrix * philox_dropout_counters(queries, keys);
    for (uint64_t q = 0; q < queries; ++q)
      for (uint64_t j = 0; j < keys; ++j) {
        const bool keeps = philox_dropout_keeps(seed, counter, keys, q, j, limit) != 0;
        factors.push_back(keeps ? 1 / (1 - p) : 0);
      }
  }
  return factors;
}

Fused fused(const CpuCall& call) {
  const View query = call.args.tensor(Arg::query);
  const View key = call.args.tensor(Arg::key);
  Fused f;
  f.query_batch = {query.sizes[0], query.sizes[1]};
  f.queries = query.sizes[2];
  f.keys = key.sizes[2];
  f.depth = query.sizes[3];
  f.width = View(call.args.tensor(Arg::value)).sizes[3];
  f.scale =
      call.args.optional_real(Arg::scale).value_or(1 / std::sqrt(static_cast<double>(f.depth)));
  if (f.batch() == 0) return f;
  f.q = batched(call, Arg::query, f.query_batch, false);
  f.k = batched(call, Arg::key, f.query_batch, true);
  f.v = batched(call, Arg::value, f.query_batch, true);
  f.scores.resize(static_cast<size_t>(f.batch() * f.queries * f.keys));
  for (int64_t b = 0; b < f.batch(); ++b)
    multiply(f.q.data() + b * f.queries * f.depth, f.k.data() + b * f.keys * f.depth,
             f.scores.data() + b * f.queries * f.keys, f.queries, f.keys, f.depth,
             {.b_transposed = true});
  const bool causal = call.args.boolean(Arg::is_causal);
  for (size_t i = 0; i < f.scores.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    const bool hidden = causal && place % f.keys > place / f.keys % f.queries;
    f.scores[i] = hidden ? -kInfinity : f.scores[i] * f.scale;
  }
  add_mask(call, Arg::attn_bias, {f.query_batch[0], f.query_batch[1], f.queries, f.keys}, f.scores);
  f.factors = dropout_factors(f, call.args.real(Arg::dropout_p),
                              static_cast<uint64_t>(call.args.integer(Arg::philox_seed)),
                              static_cast<uint64_t>(call.args.integer(Arg::philox_offset)));
  return f;
}

void fused_attention(const CpuCall& call) {
  Fused f = fused(call);
  Values sums;
  for (int64_t row = 0; row < f.batch() * f.queries; ++row) {
    double top = -kInfinity;
    double sum = 0;
    for (int64_t j = 0; j < f.keys; ++j) top = special::maximum(top, f.scores[row * f.keys + j]);
    for (int64_t j = 0; j < f.keys && top != -kInfinity; ++j)
      sum += std::exp(f.scores[row * f.keys + j] - top);
    sums.push_back(top == -kInfinity ? -kInfinity : top + std::log(sum));
  }
  if (f.keys > 0) softmax_rows(f.scores, f.keys);
  for (size_t i = 0; i < f.factors.size(); ++i) f.scores[i] *= f.factors[i];
  Values result(static_cast<size_t>(f.batch() * f.queries * f.width));
  for (int64_t b = 0; b < f.batch(); ++b)
    multiply(f.scores.data() + b * f.queries * f.keys, f.v.data() + b * f.keys * f.width,
             result.data() + b * f.queries * f.width, f.queries, f.width, f.keys);
  write(call.out(0), result);
  if (call.wants(1)) write(call.out(1), sums);
}

// Adds up the query heads that share a key head: [B, H, n] to [B, K, n].
Values share_heads(const Values& values, int64_t batch, int64_t heads, int64_t key_heads) {
  const int64_t n = static_cast<int64_t>(values.size()) / std::max<int64_t>(1, batch * heads);
  Values sums(static_cast<size_t>(batch * key_heads * n));
  for (int64_t i = 0; i < batch * heads * n; ++i)
    sums[i / n / (heads / key_heads) * n + i % n] += values[i];
  return sums;
}

void fused_attention_backward(const CpuCall& call) {
  const Fused f = fused(call);
  const auto grad = read<double>(View(call.args.tensor(Arg::grad_out)));
  const auto out = read<double>(View(call.args.tensor(Arg::out)));
  const auto sums = read<double>(View(call.args.tensor(Arg::logsumexp)));
  const int64_t rows = f.queries;
  Values grad_q(f.q.size()), grad_k(f.k.size()), grad_v(f.v.size());
  for (int64_t b = 0; b < f.batch(); ++b) {
    const double* g = grad.data() + b * rows * f.width;
    Values weights(static_cast<size_t>(rows * f.keys));
    Values scores(weights.size());
    multiply(g, f.v.data() + b * f.keys * f.width, scores.data(), rows, f.keys, f.width,
             {.b_transposed = true});
    for (int64_t i = 0; i < rows; ++i) {
      double delta = 0;
      for (int64_t c = 0; c < f.width; ++c)
        delta += g[i * f.width + c] * out[(b * rows + i) * f.width + c];
      for (int64_t j = 0; j < f.keys; ++j) {
        const auto at = static_cast<size_t>(i * f.keys + j);
        const auto place = static_cast<size_t>(b * rows * f.keys) + at;
        const double total = sums[b * rows + i];
        const double score = f.scores[place];
        const double factor = f.factors.empty() ? 1 : f.factors[place];
        const double weight = total == -kInfinity ? 0 : std::exp(score - total);
        weights[at] = weight * factor;
        scores[at] = weight * (scores[at] * factor - delta) * f.scale;
      }
    }
    multiply(weights.data(), g, grad_v.data() + b * f.keys * f.width, f.keys, f.width, rows,
             {.a_transposed = true});
    multiply(scores.data(), f.k.data() + b * f.keys * f.depth, grad_q.data() + b * rows * f.depth,
             rows, f.depth, f.keys);
    multiply(scores.data(), f.q.data() + b * rows * f.depth, grad_k.data() + b * f.keys * f.depth,
             f.keys, f.depth, rows, {.a_transposed = true});
  }
  if (call.wants(0)) write(call.out(0), grad_q);
  const int64_t key_heads = call.specs[1].sizes[1];
  const auto write_shared = [&](size_t i, const Values& values) {
    if (call.wants(i))
      write(call.out(i), share_heads(values, f.query_batch[0], f.query_batch[1], key_heads));
  };
  write_shared(1, grad_k);
  write_shared(2, grad_v);
}

constexpr CpuOperator kOperators[] = {
    {"_scaled_dot_product_attention_math.out", attention},
    {"_scaled_dot_product_fused_attention_overrideable.out", fused_attention},
    {"_scaled_dot_product_fused_attention_overrideable_backward.out", fused_attention_backward}};

}  // namespace

std::span<const CpuOperator> attention_operators() { return kOperators; }

}  // namespace ocltensor::cpu
