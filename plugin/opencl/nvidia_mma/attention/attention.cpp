// What attention forward and backward by mma.sync share: which problems they take, and operands as
// their kernels read them.
#include "attention.h"

#include <limits>

#include "call/divide_up.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

constexpr int64_t kVector = 8;  // elements in 16 bytes

// Whether a stride over `size` rows, heads or batches leads from vector to vector.
bool is_aligned(int64_t size, int64_t stride) { return size <= 1 || stride % kVector == 0; }
bool is_readable(TensorView t) {
  return t.address() % 16 == 0 && (t.size(3) <= 1 || t.stride(3) == 1) &&
         is_aligned(t.size(0), t.stride(0)) && is_aligned(t.size(1), t.stride(1)) &&
         is_aligned(t.size(2), t.stride(2));
}

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
  d.set(define::GENERATION, generation(caps)).set(define::EMULATED, caps.emulated_mma);
  d.set(define::DEPTH, form.depth).set(define::FRAGMENTS_M, form.fragments);
  return d.set(define::WARPS, form.warps).set(define::BN, form.streamed);
}

int64_t emulation_bytes(const Capabilities& caps, const AttentionForm& form) {
  return caps.emulated_mma ? form.items() * (4 * form.fragments + 2) * 4 : 0;
}

AttentionOperand::AttentionOperand(const OpCall& call, TensorView tensor)
    : tensor_(tensor), strides_{tensor.stride(0), tensor.stride(1), tensor.stride(2)} {
  if (is_readable(tensor)) return;
  const Dims sizes(tensor.sizes());
  const int64_t row = divide_up(sizes[3], kVector) * kVector;
  strides_ = {sizes[1] * sizes[2] * row, sizes[2] * row, row};
  copy_.emplace(call.scratch(static_cast<uint64_t>(sizes[0] * strides_.batch * 2)));
  copy_tensor(call,
              LocalTensor(copy_->address(), tensor.dtype(), sizes,
                          {strides_.batch, strides_.head, strides_.row, 1}),
              tensor);
}
AttentionOperand::operator MemoryRange() const {
  if (copy_) return *copy_;
  return tensor_;
}

FlashTensor strides_of(const attention::OutputPlace& out) {
  return out.wanted() ? FlashTensor{out.strides[0], out.strides[1], out.strides[2]} : FlashTensor{};
}

}  // namespace ocltensor::opencl::nvidia_mma
