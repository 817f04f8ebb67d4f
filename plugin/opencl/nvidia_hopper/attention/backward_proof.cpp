// The proof of the kernels for attention's backward on Hopper's matrix units: two query heads that
// share a key head, odd lengths, a head size that is padded, more tiles than work-groups.
#include <algorithm>
#include <cmath>

#include "attention.h"
#include "call/proof_numbers.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kHeads = 2, kQueries = 333, kKeys = 301;
constexpr double kScale = 0.25;
constexpr float kLimit = 0.03f;  // of a gradient's largest number: twice bfloat16's rounding

using Numbers = std::vector<float>;
struct Gradients {
  Numbers query, key, value;
};
struct Problem {
  int64_t depth;
  bool causal;
  Numbers query, key, value, grad;
};
float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
void add(float* to, float factor, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}
float* line(Numbers& list, int64_t row, int64_t depth) {
  return &list[static_cast<size_t>(row * depth)];
}
const float* line(const Numbers& list, int64_t row, int64_t depth) {
  return &list[static_cast<size_t>(row * depth)];
}

// Computes on the host `out` and `sums` of forward, and the gradients.
Gradients solve(const Problem& p, Numbers& out, Numbers& sums) {
  const int64_t d = p.depth;
  Gradients g{Numbers(p.query.size()), Numbers(p.key.size()), Numbers(p.key.size())};
  Numbers weights(kKeys);
  for (int64_t r = 0; r < kHeads * kQueries; ++r) {
    const int64_t seen = p.causal ? std::min(r % kQueries + 1, kKeys) : kKeys;
    const float* query = line(p.query, r, d);
    const float* grad = line(p.grad, r, d);
    float top = -INFINITY, total = 0;
    for (int64_t j = 0; j < seen; ++j) {
      float& w = weights[static_cast<size_t>(j)];
      w = static_cast<float>(kScale) * dot(query, line(p.key, j, d), d);
      top = std::max(top, w);
    }
    for (int64_t j = 0; j < seen; ++j) {
      float& w = weights[static_cast<size_t>(j)];
      total += w = std::exp(w - top);
    }
    sums[static_cast<size_t>(r)] = top + std::log(total);
    for (int64_t j = 0; j < seen; ++j)
      add(line(out, r, d), weights[static_cast<size_t>(j)] /= total, line(p.value, j, d), d);
    const float delta = dot(line(out, r, d), grad, d);
    for (int64_t j = 0; j < seen; ++j) {
      const float w = weights[static_cast<size_t>(j)];
      const float ds = static_cast<float>(kScale) * w * (dot(grad, line(p.value, j, d), d) - delta);
      add(line(g.value, j, d), w, grad, d);
      add(line(g.query, r, d), ds, line(p.key, j, d), d);
      add(line(g.key, j, d), ds, query, d);
    }
  }
  return g;
}

std::string difference(const char* what, const Numbers& got, const Numbers& want) {
  float largest = 0;
  for (const float x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i)
    if (!(std::abs(got[i] - want[i]) <= kLimit * largest))
      return fmt::format("element {} of the gradient of {} is {} instead of {}", i, what, got[i],
                         want[i]);
  return {};
}

}  // namespace

std::string wrong_hopper_backward(const OpCall& call, const void* sample) {
  HopperBackward b = *static_cast<const HopperBackward*>(sample);
  const int64_t depth = b.panel - 8, rows = kHeads * kQueries;
  ProofNumbers numbers(call);
  const Problem p{depth,
                  b.causal,
                  numbers.draw(rows * depth, 1),
                  numbers.draw(kKeys * depth, 1),
                  numbers.draw(kKeys * depth, 2),
                  numbers.draw(rows * depth, 2)};
  Numbers out(p.query.size()), sums(static_cast<size_t>(rows));
  const Gradients want = solve(p, out, sums);
  const Numbers filler(p.query.size(), NAN), key_filler(p.key.size(), NAN);
  b.batch = 1;
  b.heads = kHeads;
  b.key_heads = 1;
  b.queries = kQueries;
  b.keys = kKeys;
  b.depth = depth;
  b.scale = kScale;
  b.query = numbers.upload(p.query, b.type);
  b.key = numbers.upload(p.key, b.type);
  b.value = numbers.upload(p.value, b.type);
  b.grad = numbers.upload(p.grad, b.type);
  b.out = numbers.upload(out, b.type);
  b.sums = numbers.upload(sums, DType::Float32);
  b.grad_query = numbers.upload(filler, b.type);
  b.grad_key = numbers.upload(key_filler, b.type);
  b.grad_value = numbers.upload(key_filler, b.type);
  const FlashTensor of_queries{rows * depth, kQueries * depth, depth};
  const FlashTensor of_keys{kKeys * depth, kKeys * depth, depth};
  b.query_layout = b.grad_layout = {of_queries, kHeads, 0};
  b.key_layout = b.value_layout = {of_keys, 0, 0};
  b.out_strides = b.grad_strides = b.grad_query_strides = of_queries;
  b.grad_key_strides = b.grad_value_strides = of_keys;
  b.most_groups = 2;
  enqueue_hopper_backward(call, b);
  const auto read = [&](tb_address from, const Numbers& like) {
    return numbers.download(from, b.type, static_cast<int64_t>(like.size()));
  };
  std::string wrong = difference("query", read(b.grad_query, want.query), want.query);
  if (wrong.empty()) wrong = difference("key", read(b.grad_key, want.key), want.key);
  if (wrong.empty()) wrong = difference("value", read(b.grad_value, want.value), want.value);
  return wrong;
}

}  // namespace ocltensor::opencl::nvidia_hopper
