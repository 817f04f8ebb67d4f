// Attention that returns no weights, as a problem that several algorithms solve.
#pragma once

#include <array>

#include "attention.h"
#include "call/algorithms.h"
#include "flash_params.h"
#include "scores.h"

namespace ocltensor::opencl::attention {

// An output, or memory in its place while algorithms are measured.
struct OutputPlace {
  tb_address address = 0;
  DType dtype = DType::Float32;
  Dims sizes, strides;

  bool wanted() const { return numel(sizes) > 0; }
  LocalTensor tensor() const { return {address, dtype, sizes, strides}; }
};

// Query heads come in `groups` per key head. The other operands are the call's arguments.
struct FusedProblem {
  DType type;  // of the computation
  int64_t batch, heads, key_heads, queries, keys, depth, width;
  double scale;
  ScoreBlock block;                 // what all blocks of scores have in common
  std::array<OutputPlace, 3> outs;  // output, log-sum-exp; or gradients of query, key and value

  int64_t groups() const { return heads / key_heads; }
  Dims key_batch() const { return {batch, key_heads}; }
};

// flash.cpp: the parameters of kernels that keep scores in registers, but for tensors' strides.
FlashParams flash_params(const FusedProblem& p);

using FusedAlgorithm = AlgorithmFor<FusedProblem>;

extern const FusedAlgorithm kFlashForward, kFlashBackward;  // flash.cpp: CPU drivers
extern const FusedAlgorithm kTilesForward;                  // tiles.cpp: GPUs
extern const FusedAlgorithm kSplitForward;                  // split.cpp: few queries
// Why matrix units leave a problem to it, or nullptr.
const char* pass_over_few_queries(const OpCall& call, const FusedProblem& p);
extern const FusedAlgorithm kBlocksForward, kBlocksBackward;  // blocks.cpp: any device

}  // namespace ocltensor::opencl::attention
