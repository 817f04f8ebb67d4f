// Kinds of fused attention: of a problem, and as a kernel's defines.
#include "kind.h"

namespace ocltensor::opencl::attention {
namespace {

Planned<MaskKind> mask_kind(const FusedProblem& p) {
  if (!p.block.mask) return MaskKind::None;
  switch (p.block.mask->dtype()) {
    case DType::Bool: return MaskKind::Bool;
    case DType::Float16: return MaskKind::Half;
    case DType::BFloat16: return MaskKind::BFloat;
    case DType::Float32: return MaskKind::Float;
    default: return "the mask is of another type";
  }
}

}  // namespace

DType Kind::mask_type() const {
  constexpr DType kTypes[] = {DType::UInt8, DType::Bool, DType::Float16, DType::BFloat16,
                              DType::Float32};
  return kTypes[static_cast<size_t>(mask)];
}

Defines Kind::defines() const {
  Defines d;
  d.type(define::TYPE, type).type(define::M, mask_type());
  d.set(define::MASK, mask == MaskKind::None ? 0 : adds_numbers() ? 2 : 1);
  return d.set(define::CAUSAL, causal).set(define::DROPOUT, dropout);
}

Planned<Kind> kind_of(const OpCall& call, const FusedProblem& p) {
  const DType type = call.args().tensor(Arg::query).dtype();
  if (type != DType::Float16 && type != DType::BFloat16) return "not a 16-bit type";
  Planned<MaskKind> mask = mask_kind(p);
  if (mask.reason() != nullptr) return mask.reason();
  return Kind{type, p.block.causal, p.block.dropout > 0, mask.plan()};
}

}  // namespace ocltensor::opencl::attention
