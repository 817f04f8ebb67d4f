// The small problem by which kernels of fused attention are proven, solved on the host.
#include "proof_problem.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace ocltensor::opencl::attention {
namespace {

constexpr double kScale = 0.25, kDropped = 0.25;
constexpr uint64_t kSeed = 0x123456789, kOffset = 77;

float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
void add(float* to, float factor, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}
template <typename List>
auto* line(List& list, int64_t row, int64_t size) {
  return &list[static_cast<size_t>(row * size)];
}

AttentionProof::Numbers poison(const AttentionProof::Numbers& like) {
  return AttentionProof::Numbers(like.size(), NAN);
}

// What differs by more than `limit` of the largest number wanted, or an empty text.
std::string difference(ProofNumbers& numbers, const char* what, tb_address from, DType type,
                       const AttentionProof::Numbers& want, float limit) {
  const AttentionProof::Numbers got =
      numbers.download(from, type, static_cast<int64_t>(want.size()));
  float largest = 0;
  for (const float x : want)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i] && !(std::abs(got[i] - want[i]) <= limit * largest))
      return fmt::format("element {} of {} is {} instead of {}", i, what, got[i], want[i]);
  return {};
}

}  // namespace

AttentionProof::AttentionProof(const OpCall& call, const Kind& kind, const Shape& shape)
    : kind_(kind), shape_(shape), numbers_(call) {
  const int64_t rows = kHeads * shape.queries;
  query_ = numbers_.draw(rows * shape_.depth, 1);
  key_ = numbers_.draw(shape_.keys * shape_.depth, 1);
  value_ = numbers_.draw(shape_.keys * shape_.width, 2);
  grad_ = numbers_.draw(rows * shape_.width, 2);
  at_query_ = numbers_.upload(query_, kind.type);
  at_key_ = numbers_.upload(key_, kind.type);
  at_value_ = numbers_.upload(value_, kind.type);
  at_grad_ = numbers_.upload(grad_, kind.type);
  if (kind.mask != MaskKind::None) {
    mask_ = numbers_.draw(shape_.queries * shape_.keys, 1);
    const DType type = kind.mask_type();
    mask_tensor_.emplace(numbers_.upload(mask_, type), type, Dims{shape_.queries, shape_.keys});
  }
  out.resize(grad_.size());
  sums.resize(static_cast<size_t>(rows));
  grad_query.resize(query_.size());
  grad_key.resize(key_.size());
  grad_value.resize(value_.size());
  for (int64_t r = 0; r < rows; ++r) solve_row(r);
}

bool AttentionProof::is_seen(int64_t query, int64_t key) const {
  if (kind_.causal && key > query) return false;
  return kind_.mask != MaskKind::Bool || mask_[static_cast<size_t>(query * shape_.keys + key)] != 0;
}

void AttentionProof::solve_row(int64_t row) {
  const int64_t q = row % shape_.queries;
  const auto scale = static_cast<float>(kScale);
  const float *query = line(query_, row, shape_.depth), *grad = line(grad_, row, shape_.width);
  const auto count = static_cast<size_t>(shape_.keys);
  Numbers weights(count, -INFINITY), kept(count, 1);
  const auto queries = static_cast<uint64_t>(shape_.queries);
  const auto keys = static_cast<uint64_t>(shape_.keys);
  const auto matrix = static_cast<uint64_t>(row / shape_.queries);
  const uint64_t first_counter = kOffset + matrix * philox_dropout_counters(queries, keys);
  float top = -INFINITY, total = 0;
  for (int64_t j = 0; j < shape_.keys; ++j) {
    float& w = weights[static_cast<size_t>(j)];
    if (is_seen(q, j)) w = scale * dot(query, line(key_, j, shape_.depth), shape_.depth);
    if (kind_.mask > MaskKind::Bool) w += mask_[static_cast<size_t>(q * shape_.keys + j)];
    top = std::max(top, w);
    if (!kind_.dropout) continue;
    const bool keeps =
        philox_dropout_keeps(kSeed, first_counter, keys, static_cast<uint64_t>(q),
                             static_cast<uint64_t>(j), philox_dropout_limit(kDropped));
    kept[static_cast<size_t>(j)] = keeps ? static_cast<float>(1 / (1 - kDropped)) : 0;
  }
  for (float& w : weights) total += w = std::exp(w - (top == -INFINITY ? 0 : top));
  sums[static_cast<size_t>(row)] = total == 0 ? -INFINITY : top + std::log(total);
  for (int64_t j = 0; j < shape_.keys; ++j) {
    float& w = weights[static_cast<size_t>(j)];
    w = total == 0 ? 0 : w / total;
    add(line(out, row, shape_.width), w * kept[static_cast<size_t>(j)],
        line(value_, j, shape_.width), shape_.width);
  }
  const float delta = dot(line(out, row, shape_.width), grad, shape_.width);
  for (int64_t j = 0; j < shape_.keys; ++j) {
    const float w = weights[static_cast<size_t>(j)], factor = kept[static_cast<size_t>(j)];
    const float of_score =
        scale * w * (factor * dot(grad, line(value_, j, shape_.width), shape_.width) - delta);
    add(line(grad_value, j, shape_.width), w * factor, grad, shape_.width);
    add(line(grad_query, row, shape_.depth), of_score, line(key_, j, shape_.depth), shape_.depth);
    add(line(grad_key, j, shape_.depth), of_score, query, shape_.depth);
  }
}

FusedProblem AttentionProof::problem() const {
  FusedProblem p{};
  p.type = DType::Float32;
  p.batch = p.key_heads = 1;
  p.heads = kHeads;
  p.queries = shape_.queries;
  p.keys = shape_.keys;
  p.depth = shape_.depth;
  p.width = shape_.width;
  p.scale = kScale;
  p.block.type = p.type;
  p.block.batch = {1, kHeads};
  p.block.all_queries = shape_.queries;
  p.block.all_keys = shape_.keys;
  p.block.causal = kind_.causal;
  if (mask_tensor_) p.block.mask = mask_tensor_->view();
  p.block.dropout = kind_.dropout ? kDropped : 0;
  p.block.seed = kSeed;
  p.block.offset = kOffset;
  return p;
}

FusedProblem AttentionProof::forward_to(tb_address to_out, tb_address to_sums) const {
  FusedProblem p = problem();
  const Dims of_sums = {1, kHeads, shape_.queries};
  p.outs[0] = {to_out, kind_.type, out_sizes(), contiguous_strides(out_sizes())};
  p.outs[1] = {to_sums, DType::Float32, of_sums, contiguous_strides(of_sums)};
  return p;
}
FusedProblem AttentionProof::backward_to(tb_address query, tb_address key, tb_address value) const {
  FusedProblem p = problem();
  p.outs[0] = {query, kind_.type, query_sizes(), contiguous_strides(query_sizes())};
  p.outs[1] = {key, kind_.type, key_sizes(), contiguous_strides(key_sizes())};
  p.outs[2] = {value, kind_.type, value_sizes(), contiguous_strides(value_sizes())};
  return p;
}

std::string wrong_forward(
    AttentionProof& proof,
    const std::function<void(const FusedProblem&, const ProofOperands&)>& enqueue) {
  ProofNumbers& numbers = proof.numbers();
  const tb_address out = numbers.upload(poison(proof.out), proof.type());
  const tb_address sums = numbers.upload(poison(proof.sums), DType::Float32);
  const LocalTensor query = proof.query(), key = proof.key(), value = proof.value();
  enqueue(proof.forward_to(out, sums), {query, key, value});
  // Weights and results are rounded to 8 bits in bfloat16, and the weights' errors mostly cancel: a
  // correct kernel is within half of this. A wrong key, row or head changes numbers by tenths.
  constexpr float kLimit = 0.01f, kSumLimit = 1e-4f;
  std::string wrong =
      difference(numbers, "the log-sum-exp", sums, DType::Float32, proof.sums, kSumLimit);
  if (wrong.empty())
    wrong = difference(numbers, "the result", out, proof.type(), proof.out, kLimit);
  return wrong;
}

std::string wrong_backward(
    AttentionProof& proof,
    const std::function<void(const FusedProblem&, const BackwardProofOperands&)>& enqueue) {
  ProofNumbers& numbers = proof.numbers();
  const DType type = proof.type();
  const tb_address query = numbers.upload(poison(proof.grad_query), type),
                   key = numbers.upload(poison(proof.grad_key), type),
                   value = numbers.upload(poison(proof.grad_value), type);
  const LocalTensor out(numbers.upload(proof.out, type), type, proof.out_sizes());
  const LocalTensor of_query = proof.query(), of_key = proof.key(), of_value = proof.value(),
                    grad = proof.grad();
  enqueue(proof.backward_to(query, key, value),
          {grad, of_query, of_key, of_value, out, numbers.upload(proof.sums, DType::Float32)});
  // Weights, their gradients and results are rounded to 8 bits in bfloat16; of a gradient's largest
  // number this is four times that. A wrong key, row or head changes most numbers by tenths.
  constexpr float kLimit = 0.015f;
  std::string text =
      difference(numbers, "the gradient of query", query, type, proof.grad_query, kLimit);
  if (text.empty())
    text = difference(numbers, "the gradient of key", key, type, proof.grad_key, kLimit);
  if (text.empty())
    text = difference(numbers, "the gradient of value", value, type, proof.grad_value, kLimit);
  return text;
}

}  // namespace ocltensor::opencl::attention
