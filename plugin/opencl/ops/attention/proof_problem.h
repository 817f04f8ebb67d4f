// The small problem by which kernels of fused attention are proven: drawn on the host, solved
// there, and with operands on the device.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "call/proof_numbers.h"
#include "ops/attention/kind.h"

namespace ocltensor::opencl::attention {

class AttentionProof {
 public:
  using Numbers = std::vector<float>;
  // Of one batch. Two query heads share a key head; lengths should end in the middle of blocks.
  struct Shape {
    int64_t queries, keys;
    int64_t depth, width;  // of queries and keys, and of values
  };
  AttentionProof(const OpCall& call, const Kind& kind, const Shape& shape);

  // The problem with results at these addresses, which are contiguous; 0: not wanted.
  FusedProblem forward_to(tb_address out, tb_address sums) const;
  FusedProblem backward_to(tb_address query, tb_address key, tb_address value) const;
  LocalTensor query() const { return {at_query_, kind_.type, query_sizes()}; }
  LocalTensor key() const { return {at_key_, kind_.type, key_sizes()}; }
  LocalTensor value() const { return {at_value_, kind_.type, value_sizes()}; }
  LocalTensor grad() const { return {at_grad_, kind_.type, out_sizes()}; }
  Dims query_sizes() const { return {1, kHeads, shape_.queries, shape_.depth}; }
  Dims key_sizes() const { return {1, 1, shape_.keys, shape_.depth}; }
  Dims value_sizes() const { return {1, 1, shape_.keys, shape_.width}; }
  Dims out_sizes() const { return {1, kHeads, shape_.queries, shape_.width}; }

  // Solved on the host; `sums` are the rows' log-sum-exp.
  Numbers out, sums, grad_query, grad_key, grad_value;
  ProofNumbers& numbers() { return numbers_; }
  DType type() const { return kind_.type; }

 private:
  static constexpr int64_t kHeads = 2;
  void solve_row(int64_t row);
  bool is_seen(int64_t query, int64_t key) const;
  FusedProblem problem() const;

  Kind kind_;
  Shape shape_;
  ProofNumbers numbers_;
  Numbers query_, key_, value_, grad_, mask_;
  tb_address at_query_, at_key_, at_value_, at_grad_;
  std::optional<LocalTensor> mask_tensor_;
};

// Compare what `enqueue` computes with the host's results; empty if it is right, else what is
// wrong.
struct ProofOperands {
  TensorView query, key, value;
};
std::string wrong_forward(
    AttentionProof& proof,
    const std::function<void(const FusedProblem&, const ProofOperands&)>& enqueue);
struct BackwardProofOperands {
  TensorView grad, query, key, value, out;
  tb_address sums;
};
std::string wrong_backward(
    AttentionProof& proof,
    const std::function<void(const FusedProblem&, const BackwardProofOperands&)>& enqueue);

}  // namespace ocltensor::opencl::attention
