// The small problem by which the attention kernels are proven: drawn on the host, solved there, and
// with operands on the device.
#pragma once

#include "attention.h"
#include "call/proof_numbers.h"

namespace ocltensor::opencl::nvidia_mma {

class AttentionProof {
 public:
  using Numbers = std::vector<float>;
  // Two query heads share a key head; lengths end in the middle of blocks, and values are not as
  // wide as keys, which are copied. Both are at most `depth` wide.
  AttentionProof(const OpCall& call, const AttentionKind& kind, int64_t depth);

  // The problem with results at these addresses, which are contiguous; 0: not wanted.
  attention::FusedProblem forward_to(tb_address out, tb_address sums) const;
  attention::FusedProblem backward_to(tb_address query, tb_address key, tb_address value) const;
  LocalTensor query() const { return {at_query_, kind_.type, query_sizes()}; }
  LocalTensor key() const { return {at_key_, kind_.type, key_sizes()}; }
  LocalTensor value() const { return {at_value_, kind_.type, value_sizes()}; }
  LocalTensor grad() const { return {at_grad_, kind_.type, out_sizes()}; }
  Dims query_sizes() const { return {1, kHeads, kQueries, depth_}; }
  Dims key_sizes() const { return {1, 1, kKeys, depth_}; }
  Dims value_sizes() const { return {1, 1, kKeys, width_}; }
  Dims out_sizes() const { return {1, kHeads, kQueries, width_}; }

  // Solved on the host; `sums` are the rows' log-sum-exp.
  Numbers out, sums, grad_query, grad_key, grad_value;
  ProofNumbers& numbers() { return numbers_; }

  // What differs by more than `limit` of the largest number wanted, or an empty text.
  static std::string difference(const char* what, const Numbers& got, const Numbers& want,
                                float limit);

 private:
  static constexpr int64_t kHeads = 2, kQueries = 141, kKeys = 147;
  void solve_row(int64_t row);
  bool is_seen(int64_t query, int64_t key) const;
  attention::FusedProblem problem() const;

  AttentionKind kind_;
  int64_t depth_, width_;
  ProofNumbers numbers_;
  Numbers query_, key_, value_, grad_, mask_;
  tb_address at_query_, at_key_, at_value_, at_grad_;
  std::optional<LocalTensor> mask_tensor_;
};

}  // namespace ocltensor::opencl::nvidia_mma
