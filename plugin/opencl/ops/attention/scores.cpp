// Launches the kernels over a block of attention scores.
#include "scores.h"

#include <cmath>
#include <cstring>

#include "base/philox.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "kernels/attention.h"

namespace ocltensor::opencl::attention {
namespace {

constexpr int64_t kGroup = 128;      // work-items of a work-group on GPUs
constexpr int64_t kMostHeld = 32;    // elements of a row in a work-item's registers
constexpr int64_t kLanesOfSum = 16;  // work-items that share a row in row_products()

Defines defines_of(const ScoreBlock& block) {
  return block_defines(block).type(define::COMPUTE, block.type);
}

// Adds the defines of kernels/attention/scores_gradients.cl.
Defines with_groups(const OpCall& call, Defines d) {
  if (by_style(call, false, true))
    d.set(define::GROUP_SIZE, kGroup).set(define::LANES, kLanesOfSum);
  return d;
}

Division groups_of_rows(int64_t rows, int64_t lanes, int64_t group) {
  Division division{};
  division.local = {group, 1, 1};
  division.global = {divide_up(rows, group / lanes) * group, 1, 1};
  return division;
}

Division divide_block(const OpCall& call, const AttentionParams& p) {
  return by_style(call, divide(call.caps(), p.rows, std::max<int64_t>(1, 4096 / p.keys)),
                  groups_of_rows(p.rows, kGroup, kGroup));
}

// How work-items of a GPU share rows of scores.
struct Sharing {
  int64_t lanes, held, group;  // work-items of a row, their elements in registers (0: none), group

  static Sharing of(const OpCall& call, int64_t keys) {
    constexpr int64_t kLeastLanes = 32;
    const auto most = std::min<int64_t>(1024, call.caps().max_work_group_size);
    Sharing s{kLeastLanes, 1, kGroup};
    while (s.lanes * kMostHeld < keys && s.lanes * 2 <= most) s.lanes *= 2;
    while (s.lanes * s.held < keys) s.held *= 2;
    if (s.held > kMostHeld) return {kGroup, 0, kGroup};
    s.group = std::max(s.lanes, kGroup);
    return s;
  }
};

MemoryRange numbers(tb_address address, int64_t count, DType type) {
  return {address, 0, count * size_of(type)};
}

int64_t bytes_of_bf16_parts(const AttentionParams& p) {
  return p.rows * divide_up(p.keys, 8) * 8 * 6;
}

// A kernel's argument that exists only if bf16 parts are written.
template <typename T>
std::optional<T> given(const ScoreBf16Parts& bf16_parts, T argument) {
  return bf16_parts.weights == 0 ? std::nullopt : std::optional<T>(argument);
}

}  // namespace

Defines block_defines(const ScoreBlock& block) {
  const auto& mask = block.mask;
  Defines d;
  d.set(define::DROPOUT, block.dropout > 0)
      .set(define::MASK, !mask                          ? 0
                         : mask->dtype() == DType::Bool ? 1
                                                        : 2)
      .type(define::M, mask ? mask->dtype() : DType::UInt8);
  return d;
}

AttentionParams block_params(const ScoreBlock& block) {
  AttentionParams p{};
  p.rows = block.matrices * block.queries;
  p.first_matrix = block.first_matrix;
  p.queries = block.queries;
  p.keys = block.keys;
  p.first = block.first;
  p.all_queries = block.all_queries;
  p.rank = static_cast<int32_t>(block.batch.size());
  p.causal = block.causal;
  std::copy(block.batch.begin(), block.batch.end(), p.batch);
  if (block.mask) {
    Dims target = block.batch;
    target.push_back(block.all_queries);
    target.push_back(std::max(block.all_keys, block.keys));
    const Dims strides = broadcast_strides(block.mask->sizes(), block.mask->strides(), target);
    std::copy(strides.begin(), strides.end() - 2, p.mask_strides);
    p.mask_row = strides[strides.size() - 2];
    p.mask_column = strides.back();
  }
  if (block.dropout > 0) {
    p.seed = block.seed;
    p.offset = block.offset;
    p.pair_counters =
        static_cast<int64_t>(philox_dropout_pair_counters(static_cast<uint64_t>(block.all_keys)));
    const uint32_t limit = philox_dropout_limit(block.dropout);
    for (int w = 0; w < 4; ++w)
      p.dropped[w] = (limit >> (24 + w) & 1 ? 0xFFFFu : 0) | (limit >> (28 + w) & 1 ? ~0xFFFFu : 0);
    p.dropped_rest = limit << 8;
    const double scale = 1 / (1 - block.dropout);
    const auto rounded = static_cast<float>(scale);
    if (block.type == DType::Float64)
      std::memcpy(&p.kept_scale, &scale, sizeof scale);
    else
      std::memcpy(&p.kept_scale, &rounded, sizeof rounded);
  }
  return p;
}

void softmax_scores(const OpCall& call, const ScoreBlock& block, tb_address sums,
                    const ScoreBf16Parts& bf16_parts) {
  AttentionParams p = block_params(block);
  Defines d = defines_of(block);
  d.set(define::SUMS, sums != 0).set(define::BF16_PARTS, bf16_parts.weights != 0);
  Division division = divide_block(call, p);
  if (by_style(call, false, true)) {
    const Sharing sharing = Sharing::of(call, p.keys);
    d.set(define::GROUP_SIZE, sharing.group)
        .set(define::LANES, sharing.lanes)
        .set(define::HELD, sharing.held);
    division = groups_of_rows(p.rows, sharing.lanes, sharing.group);
  } else if (block.type == DType::Float32) {
    d.set(define::FAST_EXP, 1);
  }
  p.per_item = division.per_item;
  const MemoryRange weights(bf16_parts.weights, 0, bytes_of_bf16_parts(p));
  call.launch(kernels::attention::scores_weights::weights, d,
              {.score = numbers(block.address, p.rows * p.keys, block.type),
               .mask = memory_of_mask(block),
               .sums = numbers(sums, numel(block.batch) * p.all_queries, block.type),
               .weight_bf16_parts = given(bf16_parts, weights),
               .word = given(bf16_parts, bf16_parts.guard.memory()),
               .stop = given<Number<uint32_t>>(bf16_parts, bf16_parts.guard.value),
               .p = p})
      .run(division.global, division.local);
}

void differentiate_scores(const OpCall& call, const ScoreBlock& block, tb_address gradients,
                          tb_address sums, tb_address deltas, const ScoreBf16Parts& bf16_parts) {
  AttentionParams p = block_params(block);
  const Division division = divide_block(call, p);
  p.per_item = division.per_item;
  const int64_t queries = numel(block.batch) * p.all_queries;
  Defines d = defines_of(block);
  d.set(define::BF16_PARTS, bf16_parts.weights != 0);
  const MemoryRange of_weights(bf16_parts.weights, 0, bytes_of_bf16_parts(p));
  const MemoryRange of_gradients(bf16_parts.gradients, 0, bytes_of_bf16_parts(p));
  call.launch(kernels::attention::scores_gradients::gradients, with_groups(call, d),
              {.score = numbers(block.address, p.rows * p.keys, block.type),
               .grad = numbers(gradients, p.rows * p.keys, block.type),
               .mask = memory_of_mask(block),
               .sums = numbers(sums, queries, block.type),
               .deltas = numbers(deltas, queries, block.type),
               .weight_bf16_parts = given(bf16_parts, of_weights),
               .grad_bf16_parts = given(bf16_parts, of_gradients),
               .word = given(bf16_parts, bf16_parts.guard.memory()),
               .stop = given<Number<uint32_t>>(bf16_parts, bf16_parts.guard.value),
               .p = p})
      .run(division.global, division.local);
}

void row_products(const OpCall& call, DType type, tb_address deltas, tb_address grad,
                  tb_address out, int64_t rows, int64_t width) {
  Defines d;
  d.type(define::COMPUTE, type)
      .set(define::DROPOUT, int64_t{0})
      .set(define::MASK, int64_t{0})
      .set(define::BF16_PARTS, int64_t{0});
  d.type(define::M, DType::UInt8);
  const Division division =
      by_style(call, divide(call.caps(), rows, 16), groups_of_rows(rows, kLanesOfSum, kGroup));
  call.launch(kernels::attention::scores_gradients::deltas, with_groups(call, d),
              {.deltas = numbers(deltas, rows, type),
               .grad = numbers(grad, rows * width, type),
               .out = numbers(out, rows * width, type),
               .rows = rows,
               .per_item = division.per_item,
               .width = width})
      .run(division.global, division.local);
}

}  // namespace ocltensor::opencl::attention
