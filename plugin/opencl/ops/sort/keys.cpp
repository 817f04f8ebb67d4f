// The defines from which kernels derive the keys of sorting.
#include "keys.h"

#include "kernels/defines.h"

namespace ocltensor::opencl::sort {

Defines key_defines(DType type, Order order) {
  constexpr const char* kWords[] = {"uchar", "ushort", "uint", "ulong"};
  const auto bytes = static_cast<int64_t>(size_of(type));
  Defines d;
  d.set(define::WORD, kWords[bytes == 8 ? 3 : bytes / 2]).set(define::WIDTH, 8 * bytes);
  d.set(define::DESCENDING, order.descending);
  if (type == DType::Bool) return d.set(define::ELEMENT, "TRUTH");
  if (is_unsigned(type) || order.unsigned_keys) return d.set(define::ELEMENT, "UNSIGNED");
  if (!is_floating(type)) return d.set(define::ELEMENT, "SIGNED");
  d.set(define::INFINITE, type == DType::Float16    ? "0x7c00u"
                          : type == DType::BFloat16 ? "0x7f80u"
                          : type == DType::Float32  ? "0x7f800000u"
                                                    : "0x7ff0000000000000ul");
  return d.set(define::ELEMENT, "FLOAT");
}

}  // namespace ocltensor::opencl::sort
