// Scaled dot product attention: softmax(query key^T scale + mask) value. A row whose every score is
// -inf has weights 0.
#include <cmath>

#include "call.h"
#include "draw.h"
#include "matmul.h"
#include "special.h"

namespace ocltensor::cpu {
namespace {

using Values = std::vector<double>;

// The batch dimensions broadcast, with key and value heads repeated where query heads share them.
Values batched(const CpuCall& call, size_t i, std::span<const int64_t> batch, bool shared_heads) {
  View v = call.args.tensor(i);
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

void add_mask(const CpuCall& call, const Dims& sizes, Values& scores) {
  const auto mask = call.args.optional_tensor(3);
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

// Drops weights by the mask or at random; returns the factor that makes up for it.
double drop(const CpuCall& call, const Dims& sizes, Values& weights, DType type) {
  const double p = call.args.real(4);
  if (p <= 0) return 1;
  const double factor = p == 1 ? 0 : 1 / (1 - p);
  if (const auto given = call.args.optional_tensor(6)) {
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
  const View query = call.args.tensor(0);
  const Dims& output_sizes = call.specs[0].sizes;
  const Dims& weight_sizes = call.specs[1].sizes;
  const int64_t rows = weight_sizes[weight_sizes.size() - 2];
  const int64_t length = weight_sizes.back();
  const int64_t depth = query.sizes.back();
  const int64_t width = output_sizes.back();
  const auto batch_of = [](const Dims& d) { return std::span(d.data(), d.size() - 2); };
  const bool shared = call.args.boolean(8);
  const Values q = batched(call, 0, batch_of(weight_sizes), false);
  const Values k = batched(call, 1, batch_of(weight_sizes), shared);
  const Values v = batched(call, 2, batch_of(output_sizes), shared);
  const double scale =
      call.args.optional_real(7).value_or(1 / std::sqrt(static_cast<double>(depth)));

  Values scores(static_cast<size_t>(numel(weight_sizes)));
  for (int64_t b = 0; b < numel(batch_of(weight_sizes)); ++b)
    multiply(q.data() + b * rows * depth, k.data() + b * length * depth,
             scores.data() + b * rows * length, rows, length, depth, {.b_transposed = true});
  for (double& s : scores) s *= scale;
  if (call.args.boolean(5))
    for (size_t i = 0; i < scores.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (at % length > at / length % rows) scores[i] = -kInfinity;
    }
  add_mask(call, weight_sizes, scores);
  if (length > 0) softmax_rows(scores, length);
  const double factor = drop(call, weight_sizes, scores, query.type);
  if (call.wants(1)) write(call.out(1), scores);

  View weights;  // the same, broadcast where value has more batches than query and key
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

constexpr CpuOperator kOperators[] = {{"_scaled_dot_product_attention_math.out", attention}};

}  // namespace

std::span<const CpuOperator> attention_operators() { return kOperators; }

}  // namespace ocltensor::cpu
