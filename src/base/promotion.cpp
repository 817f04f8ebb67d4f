// Type promotion rules.
#include "promotion.h"

namespace ocltensor {
namespace {

int category(DType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : t == DType::Bool ? 0 : 1; }

// promote(), but float16 with a complex number of a lower class would keep its precision:
// complex32.
DType complex_or(DType result, DType lower) {
  if (result == DType::Float16 && is_complex(lower))
    unsupported(TB_REASON_DTYPE,
                "float16 with a complex number needs complex32, which is not supported");
  return promote(result, lower);
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  // The enumeration has the order of promotion; only these three pairs do not give the larger one.
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
  if (a == DType::Float64 && b == DType::Complex64)
    unsupported(TB_REASON_DTYPE, "float64 with complex64 needs complex128, which is not supported");
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
