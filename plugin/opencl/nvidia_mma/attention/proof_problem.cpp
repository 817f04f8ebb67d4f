// The small problem by which the attention kernels are proven, solved on the host.
#include "proof_problem.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace ocltensor::opencl::nvidia_mma {
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

}  // namespace

AttentionProof::AttentionProof(const OpCall& call, const AttentionKind& kind, int64_t depth)
    : kind_(kind), depth_(depth - 8), width_(depth - 5), numbers_(call) {
  const int64_t rows = kHeads * kQueries;
  query_ = numbers_.draw(rows * depth_, 1);
  key_ = numbers_.draw(kKeys * depth_, 1);
  value_ = numbers_.draw(kKeys * width_, 2);
  grad_ = numbers_.draw(rows * width_, 2);
  at_query_ = numbers_.upload(query_, kind.type);
  at_key_ = numbers_.upload(key_, kind.type);
  at_value_ = numbers_.upload(value_, kind.type);
  at_grad_ = numbers_.upload(grad_, kind.type);
  if (kind.mask != MaskKind::None) {
    mask_ = numbers_.draw(kQueries * kKeys, 1);
    const DType type = kind.mask_type();
    mask_tensor_.emplace(numbers_.upload(mask_, type), type, Dims{kQueries, kKeys});
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
  return kind_.mask != MaskKind::Bool || mask_[static_cast<size_t>(query * kKeys + key)] != 0;
}

void AttentionProof::solve_row(int64_t row) {
  const int64_t q = row % kQueries;
  const auto scale = static_cast<float>(kScale);
  const float *query = line(query_, row, depth_), *grad = line(grad_, row, width_);
  Numbers weights(kKeys, -INFINITY), kept(kKeys, 1);
  float top = -INFINITY, total = 0;
  for (int64_t j = 0; j < kKeys; ++j) {
    float& w = weights[static_cast<size_t>(j)];
    if (is_seen(q, j)) w = scale * dot(query, line(key_, j, depth_), depth_);
    if (kind_.mask > MaskKind::Bool) w += mask_[static_cast<size_t>(q * kKeys + j)];
    top = std::max(top, w);
    if (!kind_.dropout) continue;
    uint32_t words[4];
    constexpr int64_t kBlocks = (kKeys + 3) / 4;
    philox_block(kSeed, kOffset + static_cast<uint64_t>(row * kBlocks + j / 4), words);
    kept[static_cast<size_t>(j)] =
        philox_uniform24(words[j % 4]) < kDropped ? 0 : static_cast<float>(1 / (1 - kDropped));
  }
  for (float& w : weights) total += w = std::exp(w - (top == -INFINITY ? 0 : top));
  sums[static_cast<size_t>(row)] = total == 0 ? -INFINITY : top + std::log(total);
  for (int64_t j = 0; j < kKeys; ++j) {
    float& w = weights[static_cast<size_t>(j)];
    w = total == 0 ? 0 : w / total;
    add(line(out, row, width_), w * kept[static_cast<size_t>(j)], line(value_, j, width_), width_);
  }
  const float delta = dot(line(out, row, width_), grad, width_);
  for (int64_t j = 0; j < kKeys; ++j) {
    const float w = weights[static_cast<size_t>(j)], factor = kept[static_cast<size_t>(j)];
    const float of_score =
        scale * w * (factor * dot(grad, line(value_, j, width_), width_) - delta);
    add(line(grad_value, j, width_), w * factor, grad, width_);
    add(line(grad_query, row, depth_), of_score, line(key_, j, depth_), depth_);
    add(line(grad_key, j, depth_), of_score, query, depth_);
  }
}

attention::FusedProblem AttentionProof::problem() const {
  attention::FusedProblem p{};
  p.type = DType::Float32;
  p.batch = p.key_heads = 1;
  p.heads = kHeads;
  p.queries = kQueries;
  p.keys = kKeys;
  p.depth = depth_;
  p.width = width_;
  p.scale = kScale;
  p.block.type = p.type;
  p.block.batch = {1, kHeads};
  p.block.all_queries = kQueries;
  p.block.all_keys = kKeys;
  p.block.causal = kind_.causal;
  if (mask_tensor_) p.block.mask = mask_tensor_->view();
  p.block.dropout = kind_.dropout ? kDropped : 0;
  p.block.seed = kSeed;
  p.block.offset = kOffset;
  return p;
}

attention::FusedProblem AttentionProof::forward_to(tb_address to_out, tb_address to_sums) const {
  attention::FusedProblem p = problem();
  const Dims of_sums = {1, kHeads, kQueries};
  p.outs[0] = {to_out, kind_.type, out_sizes(), contiguous_strides(out_sizes())};
  p.outs[1] = {to_sums, DType::Float32, of_sums, contiguous_strides(of_sums)};
  return p;
}
attention::FusedProblem AttentionProof::backward_to(tb_address query, tb_address key,
                                                    tb_address value) const {
  attention::FusedProblem p = problem();
  p.outs[0] = {query, kind_.type, query_sizes(), contiguous_strides(query_sizes())};
  p.outs[1] = {key, kind_.type, key_sizes(), contiguous_strides(key_sizes())};
  p.outs[2] = {value, kind_.type, value_sizes(), contiguous_strides(value_sizes())};
  return p;
}

std::string AttentionProof::difference(const char* what, const Numbers& got, const Numbers& want,
                                       float limit) {
  float largest = 0;
  for (const float x : want)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i] && !(std::abs(got[i] - want[i]) <= limit * largest))
      return fmt::format("element {} of {} is {} instead of {}", i, what, got[i], want[i]);
  return {};
}

}  // namespace ocltensor::opencl::nvidia_mma
