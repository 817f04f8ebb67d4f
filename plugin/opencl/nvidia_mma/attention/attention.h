// Attention on matrix units by mma.sync: how its kernels are specialised, and the proofs of these
// kernels.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "call/proofs.h"
#include "kernels/defines.h"
#include "nvidia_mma/generation.h"
#include "ops/attention/kind.h"
#include "ops/attention/proof_problem.h"
#include "ops/attention/vector_operand.h"

namespace ocltensor::opencl::nvidia_mma {

// How work is cut: a warp keeps `fragments` times 16 rows, a work-group those of `warps` warps, and
// `streamed` rows of the other operands pass through local memory at once.
struct AttentionForm {
  int64_t depth;  // of rows in local memory: heads of up to so many numbers
  int64_t fragments, warps, streamed;

  int64_t kept() const { return 16 * fragments * warps; }
  int64_t items() const { return 32 * warps; }
  int64_t row_bytes() const { return 2 * depth; }
};
inline constexpr int64_t kVector = 8;  // elements in the 16 bytes that kernels read at once

// The kind of a problem, or why there is none.
Planned<attention::Kind> attention_kind(const OpCall& call, const attention::FusedProblem& p);
// The defines of kernels/nvidia_mma/include/attention_mma.h and mma.h.
Defines attention_defines(const Capabilities& caps, const attention::Kind& kind,
                          const AttentionForm& form);
// Bytes of local memory that multiply() takes where the units are emulated.
int64_t emulation_bytes(const Capabilities& caps, const AttentionForm& form);

// A kernel of forward, specialised.
struct MmaForward {
  attention::Kind kind;
  size_t form;  // in kForwardForms

  Defines defines(const Capabilities& caps) const;
};
inline constexpr std::array<AttentionForm, 8> kForwardForms = {{
    {32, 2, 4, 64},
    {32, 1, 4, 64},
    {64, 2, 4, 64},
    {64, 1, 4, 64},
    {96, 2, 4, 32},
    {96, 1, 4, 32},
    {128, 2, 4, 32},
    {128, 1, 4, 32},
}};

// Operands of a call, in place of its arguments: forward's query, key and value.
struct ForwardOperands {
  TensorView query, key, value;
};
void enqueue_mma_forward(const OpCall& call, const attention::FusedProblem& p, const MmaForward& v,
                         const ForwardOperands& operands);

// The kernel of backward, specialised, in both of its passes.
struct MmaBackward {
  attention::Kind kind;
  size_t form;  // in kBackwardForms

  Defines defines(const Capabilities& caps, int64_t pass) const;
};
// `stages` 2: rows are copied during the products of those before them.
struct BackwardForm : AttentionForm {
  int64_t stages;
};
inline constexpr std::array<BackwardForm, 8> kBackwardForms = {{
    {{32, 1, 4, 32}, 2},
    {{32, 1, 4, 32}, 1},
    {{64, 1, 4, 32}, 2},
    {{64, 1, 4, 32}, 1},
    {{96, 1, 4, 32}, 2},
    {{96, 1, 4, 32}, 1},
    {{128, 1, 4, 32}, 2},
    {{128, 1, 4, 16}, 1},
}};

// Operands of a call of backward; `sums` are contiguous.
struct BackwardOperands {
  TensorView grad, query, key, value, out;
  tb_address sums;
};
void enqueue_mma_backward(const OpCall& call, const attention::FusedProblem& p,
                          const MmaBackward& v, const BackwardOperands& operands);

extern const attention::FusedAlgorithm kAttentionForward;   // forward.cpp
extern const attention::FusedAlgorithm kAttentionBackward;  // backward.cpp

// The problem that proves kernels for rows of `depth` numbers: values are not as wide as keys, and
// are copied.
inline attention::AttentionProof::Shape proof_shape(int64_t depth) {
  return {141, 147, depth - 8, depth - 5};
}
// Reports the programs of backward after forward. `what`: const MmaForward*.
void report_likely_backward(const OpCall& call, const void* what, const ReportProgram& report);

// Compare that problem's results with the host's; empty if they are right, else what is wrong.
// `what`: const MmaForward*, const MmaBackward*.
std::string wrong_mma_forward(const OpCall& call, const void* what);
std::string wrong_mma_backward(const OpCall& call, const void* what);

}  // namespace ocltensor::opencl::nvidia_mma
