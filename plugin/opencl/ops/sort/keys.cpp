// What kernels make keys of sorting from.
#include "keys.h"

namespace ocltensor::opencl {

Defines key_defines(DType type, SortOrder order) {
  constexpr const char* kWords[] = {"uchar", "ushort", "uint", "ulong"};
  const auto bytes = static_cast<int64_t>(size_of(type));
  Defines d;
  d.set("WORD", kWords[bytes == 8 ? 3 : bytes / 2]).set("WIDTH", 8 * bytes);
  d.set("DESCENDING", order.descending);
  if (type == DType::Bool) return d.set("ELEMENT", "TRUTH");
  if (type == DType::UInt8 || order.unsigned_keys) return d.set("ELEMENT", "UNSIGNED");
  if (!is_floating(type)) return d.set("ELEMENT", "SIGNED");
  d.set("INFINITE", type == DType::Float16    ? "0x7c00u"
                    : type == DType::BFloat16 ? "0x7f80u"
                    : type == DType::Float32  ? "0x7f800000u"
                                              : "0x7ff0000000000000ul");
  return d.set("ELEMENT", "FLOAT");
}

}  // namespace ocltensor::opencl
