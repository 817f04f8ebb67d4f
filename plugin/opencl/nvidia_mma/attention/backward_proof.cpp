// The proof of the kernels for attention backward by mma.sync on the driver at hand, before their
// first use.
#include <cmath>

#include "proof_problem.h"

namespace ocltensor::opencl::nvidia_mma {

std::string wrong_mma_backward(const OpCall& call, const void* what) {
  const MmaBackward& v = *static_cast<const MmaBackward*>(what);
  AttentionProof proof(call, v.kind, kBackwardForms[v.form].depth);
  ProofNumbers& numbers = proof.numbers();
  const auto poisoned = [&](const AttentionProof::Numbers& like) {
    return numbers.upload(std::vector<float>(like.size(), NAN), v.kind.type);
  };
  const tb_address query = poisoned(proof.grad_query), key = poisoned(proof.grad_key),
                   value = poisoned(proof.grad_value);
  const LocalTensor out(numbers.upload(proof.out, v.kind.type), v.kind.type, proof.out_sizes());
  enqueue_mma_backward(call, proof.backward_to(query, key, value), v,
                       {proof.grad(), proof.query(), proof.key(), proof.value(), out,
                        numbers.upload(proof.sums, DType::Float32)});
  // Weights, their gradients and results are rounded to 8 bits in bfloat16; of a gradient's largest
  // number this is four times that. A wrong key, row or head changes most numbers by tenths.
  constexpr float kLimit = 0.015f;
  const auto wrong = [&](const char* name, tb_address from, const AttentionProof::Numbers& want) {
    return AttentionProof::difference(
        name, numbers.download(from, v.kind.type, static_cast<int64_t>(want.size())), want, kLimit);
  };
  std::string text = wrong("the gradient of query", query, proof.grad_query);
  if (text.empty()) text = wrong("the gradient of key", key, proof.grad_key);
  if (text.empty()) text = wrong("the gradient of value", value, proof.grad_value);
  return text;
}

}  // namespace ocltensor::opencl::nvidia_mma
