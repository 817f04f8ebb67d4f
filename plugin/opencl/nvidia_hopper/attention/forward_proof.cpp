// The proof of the kernels for attention on Hopper's matrix units: grouped heads, odd lengths, a
// head size that is padded, more tiles than work-groups, gaps between the result's rows.
#include <algorithm>
#include <cmath>
#include <vector>

#include "attention.h"
#include "call/proof_numbers.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kBatch = 2, kHeads = 2, kQueries = 205, kKeys = 301, kGap = 8, kFiller = 7;
constexpr double kScale = 0.25;
// Weights and results are rounded to 8 bits in bfloat16, and values are 4 at most: the largest
// error of a correct kernel is 0.016, while a wrong key, row or head changes most numbers by
// tenths.
constexpr float kLimit = 0.04f, kSumLimit = 1e-3f;

// Computes one row on the host: `out` has `depth` numbers; returns the log-sum-exp.
float row(const float* query, const float* keys, const float* values, int64_t seen, int64_t depth,
          float* out) {
  std::vector<float> weights(static_cast<size_t>(seen));
  float top = -INFINITY, total = 0;
  for (int64_t j = 0; j < seen; ++j) {
    float sum = 0;
    for (int64_t c = 0; c < depth; ++c) sum += query[c] * keys[j * depth + c];
    weights[static_cast<size_t>(j)] = sum * static_cast<float>(kScale);
    top = std::max(top, weights[static_cast<size_t>(j)]);
  }
  for (float& w : weights) total += w = std::exp(w - top);
  std::fill_n(out, depth, 0.0f);
  for (int64_t j = 0; j < seen; ++j)
    for (int64_t c = 0; c < depth; ++c)
      out[c] += weights[static_cast<size_t>(j)] / total * values[j * depth + c];
  return top + std::log(total);
}

HopperTensor contiguous(int64_t heads, int64_t rows, int64_t depth) {
  return {{heads * rows * depth, rows * depth, depth}, heads == 1 ? 0 : heads, kBatch};
}

}  // namespace

std::string wrong_hopper_forward(const OpCall& call, const void* variant) {
  const HopperVariant& v = *static_cast<const HopperVariant*>(variant);
  const int64_t depth = v.depth - 8, line = depth + kGap, rows = kBatch * kHeads * kQueries;
  ProofNumbers numbers(call);
  const std::vector<float> query = numbers.draw(rows * depth, 1);
  const std::vector<float> key = numbers.draw(kBatch * kKeys * depth, 1);
  const std::vector<float> value = numbers.draw(kBatch * kKeys * depth, 4);
  const std::vector<float> filler(static_cast<size_t>(rows * line), kFiller);
  HopperForward f{.variant = v,
                  .batch = kBatch,
                  .heads = kHeads,
                  .key_heads = 1,
                  .queries = kQueries,
                  .keys = kKeys,
                  .depth = depth,
                  .scale = kScale,
                  .query = numbers.upload(query, v.type),
                  .key = numbers.upload(key, v.type),
                  .value = numbers.upload(value, v.type),
                  .out = numbers.upload(filler, v.type),
                  .sums = numbers.upload(filler, DType::Float32),
                  .query_layout = contiguous(kHeads, kQueries, depth),
                  .key_layout = contiguous(1, kKeys, depth),
                  .value_layout = contiguous(1, kKeys, depth),
                  .out_layout = {kHeads * kQueries * line, kQueries * line, line},
                  .most_groups = 3};
  enqueue_hopper_forward(call, f);
  const std::vector<float> out = numbers.download(f.out, v.type, rows * line);
  const std::vector<float> sums = numbers.download(f.sums, DType::Float32, rows);
  std::vector<float> want(static_cast<size_t>(line), kFiller);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t keys_at = r / (kHeads * kQueries) * kKeys * depth, at = r % kQueries;
    const float sum = row(&query[static_cast<size_t>(r * depth)],
                          &key[static_cast<size_t>(keys_at)], &value[static_cast<size_t>(keys_at)],
                          v.causal ? std::min(at + 1, kKeys) : kKeys, depth, want.data());
    const float* got = &out[static_cast<size_t>(r * line)];
    for (int64_t c = 0; c < line; ++c)
      if (!(std::abs(got[c] - want[static_cast<size_t>(c)]) <= kLimit))
        return fmt::format("row {}, column {} is {} instead of {}", r, c, got[c],
                           want[static_cast<size_t>(c)]);
    if (!(std::abs(sums[static_cast<size_t>(r)] - sum) <= kSumLimit))
      return fmt::format("the log-sum-exp of row {} is {} instead of {}", r,
                         sums[static_cast<size_t>(r)], sum);
  }
  return {};
}

}  // namespace ocltensor::opencl::nvidia_hopper
