// What attention forward and backward by mma.sync share: which problems they take, and their
// defines.
#include "attention.h"

#include <limits>

#include "call/divide_up.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

const char* refuse_sizes(const attention::FusedProblem& p) {
  if (std::max(p.depth, p.width) > 128) return "a head is wider than 128";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  constexpr int64_t kLeastRows = 16;  // of a work-group
  if (std::max(p.queries, p.keys) > kMost - 256 ||
      divide_up(std::max(p.queries, p.keys), kLeastRows) > kMost / (p.batch * p.heads))
    return "the sizes need 64 bits";
  const auto scale = static_cast<float>(p.scale);
  if (!(scale > 0) || scale > std::numeric_limits<float>::max() / 2)
    return "the scale is not positive";  // the largest score is found before scaling
  return nullptr;
}

}  // namespace

Planned<attention::Kind> attention_kind(const OpCall& call, const attention::FusedProblem& p) {
  Planned<attention::Kind> kind = attention::kind_of(call, p);
  if (kind.reason() != nullptr) return kind;
  if (kind.plan().type == DType::BFloat16 && generation(call.caps()) < 80)
    return "bfloat16 needs compute capability 8.0";
  if (const char* reason = refuse_sizes(p)) return reason;
  return kind;
}

Defines attention_defines(const Capabilities& caps, const attention::Kind& kind,
                          const AttentionForm& form) {
  Defines d = kind.defines();
  d.set(define::GENERATION, generation(caps))
      .set(define::EMULATED, nvidia::facts(caps).emulated_mma);
  d.set(define::DEPTH, form.depth).set(define::FRAGMENTS_M, form.fragments);
  return d.set(define::WARPS, form.warps).set(define::BN, form.streamed);
}

int64_t emulation_bytes(const Capabilities& caps, const AttentionForm& form) {
  return nvidia::facts(caps).emulated_mma ? form.items() * (4 * form.fragments + 2) * 4 : 0;
}

}  // namespace ocltensor::opencl::nvidia_mma
