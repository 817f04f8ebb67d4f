// Operands of attention in the compute type, and the kernels over a block of its scores.
#pragma once

#include <optional>

#include "attention_params.h"
#include "call/op_call.h"
#include "ops/copy/copy.h"
#include "ops/matmul/guard.h"

namespace ocltensor::opencl::attention {

// A row-major operand in the compute type, its batch dimensions broadcast to `batch`: the tensor
// itself if it is such, else a copy.
class Operand {
 public:
  Operand(const OpCall& call, TensorView tensor, const Dims& batch, DType type)
      : sizes_(with_matrix(batch, tensor)),
        memory_(needs_copy(tensor, sizes_, type)
                    ? std::optional<Scratch>(
                          call.scratch(static_cast<uint64_t>(numel(sizes_) * size_of(type))))
                    : std::nullopt),
        local_(memory_ ? memory_->address() : tensor.address(), type, sizes_) {
    if (memory_)
      copy_tensor(call, local_,
                  LocalTensor(tensor.address(), tensor.dtype(), sizes_,
                              broadcast_strides(tensor.sizes(), tensor.strides(), sizes_)));
  }
  tb_address address() const { return local_.view().address(); }

 private:
  static Dims with_matrix(Dims batch, TensorView tensor) {
    batch.push_back(tensor.size(-2));
    batch.push_back(tensor.size(-1));
    return batch;
  }
  static bool needs_copy(TensorView tensor, const Dims& sizes, DType type) {
    return tensor.dtype() != type || !tensor.is_contiguous() || !(Dims(tensor.sizes()) == sizes);
  }
  Dims sizes_;
  std::optional<Scratch> memory_;
  LocalTensor local_;
};

// A result in the compute type: the output itself, or scratch memory that finish() converts.
class Result {
 public:
  Result(const OpCall& call, TensorView out, const Dims& sizes, DType type)
      : call_(call),
        out_(out),
        wanted_(out.numel() > 0),
        memory_(wanted_ && out.dtype() == type && out.is_contiguous()
                    ? std::nullopt
                    : std::optional<Scratch>(
                          call.scratch(static_cast<uint64_t>(numel(sizes) * size_of(type))))),
        local_(memory_ ? memory_->address() : out.address(), type, sizes) {}
  TensorView view() const { return local_.view(); }
  void finish() {
    if (memory_ && wanted_) copy_tensor(call_, out_, local_);
  }

 private:
  const OpCall& call_;
  TensorView out_;
  bool wanted_;
  std::optional<Scratch> memory_;
  LocalTensor local_;
};

// Scores of some queries: row-major [matrices, queries, keys] in scratch memory. `matrices`
// consecutive ones of the flattened batch dimensions, from `first_matrix` on.
struct ScoreBlock {
  tb_address address;
  DType type;
  Dims batch;
  int64_t first_matrix = 0, matrices = 0;
  int64_t queries, keys;
  int64_t first = 0;  // the first query, among all_queries
  int64_t all_queries = 0;
  int64_t all_keys = 0;  // for dropout, whose random numbers are counted over all keys
  bool causal = false;
  std::optional<TensorView> mask;  // broadcasts to [batch..., all_queries, all_keys]
  double dropout = 0;
  uint64_t seed = 0, offset = 0;
};

// The mask's memory; empty without a mask.
inline MemoryRange memory_of_mask(const ScoreBlock& block) {
  return block.mask ? MemoryRange(*block.mask) : nullptr;
}

// Where bf16 parts of weights (and of scores' gradients) are written instead of floats: three
// tensors [matrices, queries, keys rounded up to a multiple of 8]. If the guard's word has its
// value, floats are written after all.
struct ScoreBf16Parts {
  tb_address weights = 0, gradients = 0;  // weights 0: no bf16 parts
  matmul::Guard guard;
};

// DROPOUT, MASK and M of kernels/include/attention.h.
Defines block_defines(const ScoreBlock& block);
// The parameters of a block for its kernels; `per_item` is left to the caller.
AttentionParams block_params(const ScoreBlock& block);
// Turns scores into weights. `sums`, if not 0, receives the log-sum-exp [batch..., all_queries].
void softmax_scores(const OpCall& call, const ScoreBlock& block, tb_address sums = 0,
                    const ScoreBf16Parts& bf16_parts = {});
// Turns scores into weights, and `gradients` (of the weights, a block of the same shape) into those
// of the scores, from the rows' log-sum-exp and `deltas`, both [batch..., all_queries].
void differentiate_scores(const OpCall& call, const ScoreBlock& block, tb_address gradients,
                          tb_address sums, tb_address deltas,
                          const ScoreBf16Parts& bf16_parts = {});
// deltas[row] = sum over `width` of grad[row] * out[row].
void row_products(const OpCall& call, DType type, tb_address deltas, tb_address grad,
                  tb_address out, int64_t rows, int64_t width);

}  // namespace ocltensor::opencl::attention
