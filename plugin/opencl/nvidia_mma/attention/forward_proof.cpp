// The proof of a kernel for attention forward by mma.sync on the driver at hand, before its first
// use.
#include <cmath>

#include "proof_problem.h"

namespace ocltensor::opencl::nvidia_mma {

std::string wrong_mma_forward(const OpCall& call, const void* what) {
  const MmaForward& v = *static_cast<const MmaForward*>(what);
  AttentionProof proof(call, v.kind, kForwardForms[v.form].depth);
  ProofNumbers& numbers = proof.numbers();
  const auto poisoned = [&](size_t count, DType type) {
    return numbers.upload(std::vector<float>(count, NAN), type);
  };
  const tb_address out = poisoned(proof.out.size(), v.kind.type);
  const tb_address sums = poisoned(proof.sums.size(), DType::Float32);
  enqueue_mma_forward(call, proof.forward_to(out, sums), v,
                      {proof.query(), proof.key(), proof.value()});
  const auto read = [&](tb_address from, DType type, size_t count) {
    return numbers.download(from, type, static_cast<int64_t>(count));
  };
  // Weights and results are rounded to 8 bits in bfloat16, and the weights' errors mostly cancel: a
  // correct kernel is within half of this. A wrong key, row or head changes numbers by tenths.
  constexpr float kLimit = 0.01f, kSumLimit = 1e-4f;
  std::string wrong = AttentionProof::difference(
      "the log-sum-exp", read(sums, DType::Float32, proof.sums.size()), proof.sums, kSumLimit);
  if (wrong.empty())
    wrong = AttentionProof::difference("the result", read(out, v.kind.type, proof.out.size()),
                                       proof.out, kLimit);
  return wrong;
}

}  // namespace ocltensor::opencl::nvidia_mma
