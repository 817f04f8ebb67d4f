// Attention on Hopper's matrix units: the operands of its kernels, and the proofs of these kernels.
#pragma once

#include <string>

#include "attention_hopper_params.h"
#include "call/proofs.h"
#include "nvidia_hopper/attention/forms.h"
#include "ops/attention/proof_problem.h"

namespace ocltensor::opencl::nvidia_hopper {

// The kind of a problem for these kernels.
struct HopperAttention : attention::Kind {
  bool mask_tiles;  // whether the copy engine brings the mask's blocks

  size_t index() const { return Kind::index() * 2 + (mask_tiles ? 1 : 0); }
  Defines defines() const { return Kind::defines().set(define::MASK_TILES, mask_tiles); }
};
inline constexpr size_t kHopperAttentionKinds = attention::kKinds * 2;

// A kernel of forward, specialised.
struct HopperForward {
  HopperAttention kind;
  size_t row;  // of kForwardForms

  const ForwardForm& form() const { return kForwardForms[row]; }
  Defines defines() const;
};

// The kernel of backward, specialised, in all of its passes.
struct HopperBackward {
  HopperAttention kind;
  int64_t depth;  // padded: 64 or 128
  bool one_pass;  // whose sums for the query are added in any order

  HopperPass first_pass() const { return one_pass ? HopperPass::All : HopperPass::KeyValue; }
  const BackwardForm& form(HopperPass pass) const { return backward_form(kind, depth, pass); }
  Defines defines(HopperPass pass) const;
};

// Operands in place of a call's arguments; `sums` are contiguous.
struct HopperForwardOperands {
  TensorView query, key, value;
};
struct HopperBackwardOperands {
  TensorView grad, query, key, value, out;
  tb_address sums;
};

// The kind of a problem that both directions take, or why they decline it.
Planned<HopperAttention> hopper_attention(const OpCall& call, const attention::FusedProblem& p);
// Whether the copy engine can read the tensor, and every line begins at a full vector. An output
// must not be broadcast.
bool is_hopper_readable(TensorView t, bool output);
HopperTensor hopper_layout(TensorView t);
// The layout of a mask that the copy engine can read, of boxes of `rows` queries.
struct HopperMask {
  HopperTensor layout;
  int64_t rows;  // of a box: 1 if all queries share one
};
HopperMask hopper_mask(const attention::FusedProblem& p, const AttentionParams& scores,
                       int64_t rows);
// How many heads are worked on together, in equal bundles whose keys and values fit the cache;
// those of a head take `bytes`.
int64_t hopper_bundle(int64_t heads, int64_t bytes, int64_t sharing);

extern const attention::FusedAlgorithm kForward, kBackward;  // forward.cpp, backward.cpp
extern const attention::FusedAlgorithm kBf16x6Forward, kBf16x6Backward;  // bf16x6.cpp

// Whether two adjacent keys' elements of the problem's mask can be read at once. `scores`: those of
// attention::flash_params(p).
bool is_mask_in_pairs(const attention::FusedProblem& p, const AttentionParams& scores);

// `most_groups` work-groups at most, which take tiles in turn.
void enqueue_hopper_forward(const OpCall& call, const attention::FusedProblem& p,
                            const HopperForward& v, const HopperForwardOperands& operands,
                            int64_t most_groups);
void enqueue_hopper_backward(const OpCall& call, const attention::FusedProblem& p,
                             const HopperBackward& v, const HopperBackwardOperands& operands,
                             int64_t most_groups);

// The problem that proves kernels for rows of up to `depth` numbers: heads that are padded, more
// tiles than work-groups. Lines of a mask are what the kind asks for.
constexpr int64_t kProofGroups = 2;
inline attention::AttentionProof::Shape proof_shape(const HopperAttention& kind, int64_t depth) {
  return {205, kind.mask_tiles ? 304 : 300, depth - 8, depth - 8};
}
// Reports the programs of backward after forward. `what`: const HopperForward*.
void report_likely_backward(const OpCall& call, const void* what, const ReportProgram& report);

// Compare that problem's results with the host's; empty if they are right, else what is wrong.
// `what`: const HopperForward*, const HopperBackward*.
std::string wrong_hopper_forward(const OpCall& call, const void* what);   // forward.cpp
std::string wrong_hopper_backward(const OpCall& call, const void* what);  // backward.cpp

}  // namespace ocltensor::opencl::nvidia_hopper
