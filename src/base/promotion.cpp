// Type promotion rules.
#include "promotion.h"

namespace ocltensor {
namespace {

int category(DType t) {
  if (is_complex(t)) return 3;
  return is_floating(t) || is_float8(t) ? 2 : t == DType::Bool ? 0 : 1;
}

// promote(), but with a complex number of a lower class a floating type keeps its precision.
DType complex_or(DType result, DType lower) {
  if (is_floating(result) && is_complex(lower)) return complex_type(result);
  return promote(result, lower);
}

// The order of promotion: but for a few pairs the larger one of two types is the result.
int rank(DType t) {
  switch (t) {
    case DType::Complex32: return 20;
    case DType::Complex64: return 21;
    case DType::Complex128: return 22;
    default: return static_cast<int>(t);
  }
}

[[noreturn]] void refuse_promotion(DType a, DType b) {
  fail(TB_E_INVALID, "types {} and {} have no common type: convert one of them", name(a), name(b));
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (rank(a) > rank(b)) std::swap(a, b);
  if (is_float8(a) || is_float8(b)) refuse_promotion(a, b);
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) {
    if (!is_floating(a) && !is_floating(b)) refuse_promotion(a, b);
    return is_floating(a) ? a : b;
  }
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
  if (a == DType::Float64 && is_complex(b)) return DType::Complex128;
  if (b == DType::Complex32 && (a == DType::BFloat16 || a == DType::Float32))
    return DType::Complex64;
  return b;
}

void PromotionState::add(int cls, DType type) {
  type_[cls] = seen_[cls] ? promote(type_[cls], type) : type;
  seen_[cls] = true;
}
void PromotionState::add(TensorView tensor) { add(tensor.ndim() > 0 ? 0 : 1, tensor.dtype()); }
void PromotionState::add(Scalar number) { add(2, number.dtype()); }
void PromotionState::add(const Args& args, Arg a) {
  if (args.is_number(a))
    add(args.number(a));
  else
    add(args.tensor(a));
}

DType PromotionState::result() const {
  bool have = false;
  DType result = DType::Bool;
  for (int cls = 0; cls < 3; ++cls) {
    if (!seen_[cls]) continue;
    if (!have)
      result = type_[cls];
    else if (category(type_[cls]) > category(result))
      result =
          is_complex(type_[cls]) || !is_floating(result) ? complex_or(result, type_[cls]) : result;
    have = true;
  }
  check(have, "type promotion needs at least one operand");
  return result;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, true)) return false;
  return from == DType::Bool || to != DType::Bool;
}

}  // namespace ocltensor
