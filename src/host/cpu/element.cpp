// Loading and storing elements: one dtype switch for each.
#include "element.h"

#include <type_traits>

#include "ocltensor/error.h"

namespace ocltensor::cpu {
namespace {

struct Truth {
  uint8_t bits;
};
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
template <DType type>
struct Float8 {
  static constexpr DType kType = type;
  uint8_t bits;
};
template <typename S>
concept IsFloat8 = requires {
  S::kType;
};

int64_t truncated(double v) {
  return v >= -0x1p63 && v < 0x1p63 ? static_cast<int64_t>(v) : INT64_MIN;
}

template <typename T, typename S>
T widen(S s) {
  if constexpr (std::is_same_v<S, Truth>)
    return static_cast<T>(s.bits != 0);
  else if constexpr (std::is_same_v<S, Half>)
    return widen<T>(half_to_float(s.bits));
  else if constexpr (std::is_same_v<S, BFloat>)
    return widen<T>(bfloat16_to_float(s.bits));
  else if constexpr (IsFloat8<S>)
    return widen<T>(float8_to_float(s.bits, S::kType));
  else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<T>)
    return truncated(s);
  else
    return static_cast<T>(s);
}

template <typename S, typename T>
S narrow(T v) {
  if constexpr (std::is_same_v<S, Truth>)
    return {static_cast<uint8_t>(v != 0)};
  else if constexpr (std::is_same_v<S, Half>)
    return {float_to_half(static_cast<float>(v))};
  else if constexpr (std::is_same_v<S, BFloat>)
    return {float_to_bfloat16(static_cast<float>(v))};
  else if constexpr (IsFloat8<S>)
    return {float_to_float8(static_cast<float>(v), S::kType)};
  else if constexpr (std::is_integral_v<S> && std::is_floating_point_v<T>)
    return static_cast<S>(truncated(v));
  else
    return static_cast<S>(v);
}

// Calls `f` with a value of the storage type.
template <typename F>
void with_storage(DType type, F&& f) {
  switch (type) {
    case DType::Bool: return f(Truth{});
    case DType::UInt8: return f(uint8_t{});
    case DType::Int8: return f(int8_t{});
    case DType::Int16: return f(int16_t{});
    case DType::Int32: return f(int32_t{});
    case DType::Int64: return f(int64_t{});
    case DType::Float16: return f(Half{});
    case DType::BFloat16: return f(BFloat{});
    case DType::Float32: return f(float{});
    case DType::Float64: return f(double{});
    case DType::UInt16: return f(uint16_t{});
    case DType::UInt32: return f(uint32_t{});
    case DType::UInt64: return f(uint64_t{});
    case DType::Float8E4M3FN: return f(Float8<DType::Float8E4M3FN>{});
    case DType::Float8E5M2: return f(Float8<DType::Float8E5M2>{});
    case DType::Float8E4M3FNUZ: return f(Float8<DType::Float8E4M3FNUZ>{});
    case DType::Float8E5M2FNUZ: return f(Float8<DType::Float8E5M2FNUZ>{});
    case DType::Float8E8M0FNU: return f(Float8<DType::Float8E8M0FNU>{});
    default: unsupported(TB_REASON_DTYPE, "the CPU backend does not compute with {}", name(type));
  }
}

template <typename T>
void load_as(T* to, const void* from, DType type, int64_t stride, int64_t count) {
  with_storage(type, [&]<typename S>(S) {
    const S* p = static_cast<const S*>(from);
    if (stride == 1)
      for (int64_t i = 0; i < count; ++i) to[i] = widen<T>(p[i]);
    else
      for (int64_t i = 0; i < count; ++i) to[i] = widen<T>(p[i * stride]);
  });
}

template <typename T>
void store_as(void* to, DType type, int64_t stride, const T* from, int64_t count) {
  with_storage(type, [&]<typename S>(S) {
    S* p = static_cast<S*>(to);
    if (stride == 1)
      for (int64_t i = 0; i < count; ++i) p[i] = narrow<S>(from[i]);
    else
      for (int64_t i = 0; i < count; ++i) p[i * stride] = narrow<S>(from[i]);
  });
}

template <typename T>
T rounded_as(T value, DType type) {
  with_storage(type, [&]<typename S>(S) { value = widen<T>(narrow<S>(value)); });
  return value;
}

}  // namespace

void load(double* to, const void* from, DType type, int64_t stride, int64_t count) {
  load_as(to, from, type, stride, count);
}
void load(int64_t* to, const void* from, DType type, int64_t stride, int64_t count) {
  load_as(to, from, type, stride, count);
}
void store(void* to, DType type, int64_t stride, const double* from, int64_t count) {
  store_as(to, type, stride, from, count);
}
void store(void* to, DType type, int64_t stride, const int64_t* from, int64_t count) {
  store_as(to, type, stride, from, count);
}
double rounded(double value, DType type) { return rounded_as(value, type); }
int64_t rounded(int64_t value, DType type) { return rounded_as(value, type); }

}  // namespace ocltensor::cpu
