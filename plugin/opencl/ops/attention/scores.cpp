// Launching the kernels over a block of attention scores.
#include "scores.h"

#include <cmath>
#include <cstring>

#include "kernel_sources.h"
#include "ops/division.h"

namespace ocltensor::opencl {
namespace {

constexpr size_t kGroup = 128;  // work-items that share a row on GPUs

Defines defines_of(const OpCall& call, const ScoreBlock& block) {
  Defines d;
  d.type("COMPUTE", block.type)
      .set("ROWS", is_rows(call))
      .set("DROPOUT", block.dropout > 0)
      .set("MASK", !block.mask                          ? 0
                   : block.mask->dtype() == DType::Bool ? 1
                                                        : 2);
  d.type("M", block.mask ? block.mask->dtype() : DType::UInt8);
  return d;
}

Division divide_block(const OpCall& call, const AttentionParams& p) {
  Division division = divide(call.caps(), p.rows, std::max<int64_t>(1, 4096 / p.keys));
  if (!is_rows(call)) {
    division.local[0] = kGroup;
    division.global[0] = static_cast<size_t>(p.rows) * kGroup;
  }
  return division;
}

void bind_numbers(Launch& launch, tb_address address, int64_t count, DType type) {
  launch.memory(address, 0, address == 0 ? 0 : count * size_of(type));
}

void bind_mask(Launch& launch, const ScoreBlock& block) {
  if (block.mask)
    bind(launch, *block.mask);
  else
    launch.memory(0, 0, 0);
}

}  // namespace

AttentionParams block_params(const ScoreBlock& block) {
  AttentionParams p{};
  p.rows = numel(block.batch) * block.queries;
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
    p.row_blocks = (block.all_keys + 3) / 4;
    p.dropped = std::llrint(std::ldexp(block.dropout, 24));
    const double scale = 1 / (1 - block.dropout);
    const auto rounded = static_cast<float>(scale);
    if (block.type == DType::Float64)
      std::memcpy(&p.kept_scale, &scale, sizeof scale);
    else
      std::memcpy(&p.kept_scale, &rounded, sizeof rounded);
  }
  return p;
}

void softmax_scores(const OpCall& call, const ScoreBlock& block, tb_address sums) {
  AttentionParams p = block_params(block);
  Defines d = defines_of(call, block);
  d.set("SUMS", sums != 0);
  if (!is_rows(call))
    d.set("GROUP_SIZE", static_cast<int64_t>(kGroup));
  else if (block.type == DType::Float32)
    d.set("FAST_EXP", 1);
  const Division division = divide_block(call, p);
  p.per_item = division.per_item;
  Launch launch = call.launch(kernel_sources::attention_weights, "weights", d);
  bind_numbers(launch, block.address, p.rows * p.keys, block.type);
  bind_mask(launch, block);
  bind_numbers(launch, sums, numel(block.batch) * p.all_queries, block.type);
  launch.value(p).run(division.global, division.local);
}

void differentiate_scores(const OpCall& call, const ScoreBlock& block, tb_address gradients,
                          tb_address sums, tb_address deltas) {
  AttentionParams p = block_params(block);
  const Division division = divide_block(call, p);
  p.per_item = division.per_item;
  const int64_t queries = numel(block.batch) * p.all_queries;
  Launch launch =
      call.launch(kernel_sources::attention_gradients, "gradients", defines_of(call, block));
  bind_numbers(launch, block.address, p.rows * p.keys, block.type);
  bind_numbers(launch, gradients, p.rows * p.keys, block.type);
  bind_mask(launch, block);
  bind_numbers(launch, sums, queries, block.type);
  bind_numbers(launch, deltas, queries, block.type);
  launch.value(p).run(division.global, division.local);
}

void row_products(const OpCall& call, DType type, tb_address deltas, tb_address a, tb_address b,
                  int64_t rows, int64_t width) {
  Defines d;
  d.type("COMPUTE", type)
      .set("ROWS", is_rows(call))
      .set("DROPOUT", int64_t{0})
      .set("MASK", int64_t{0});
  d.type("M", DType::UInt8);
  const Division division = divide(call.caps(), rows, 16);
  Launch launch = call.launch(kernel_sources::attention_gradients, "deltas", d);
  bind_numbers(launch, deltas, rows, type);
  bind_numbers(launch, a, rows * width, type);
  bind_numbers(launch, b, rows * width, type);
  launch.value(rows).value(division.per_item).value(width).run(division.global, division.local);
}

}  // namespace ocltensor::opencl
