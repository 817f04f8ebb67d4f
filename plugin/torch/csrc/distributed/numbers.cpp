// One loop for each pair of a type and a way to combine, over blocks that stay in the cache.
#include "numbers.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace torch_ocl::distributed {
namespace {

constexpr size_t kBlock = 2048;

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double,
                                std::conditional_t<std::is_integral_v<T>, int64_t, float>>;

// Overflowing sums and products of integers wrap.
template <typename Op>
int64_t wrapped(int64_t a, int64_t b, Op op) {
  return static_cast<int64_t>(op(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

template <Combine how, typename W>
W combined(W a, W b) {
  constexpr bool integral = std::is_integral_v<W>;
  if constexpr (how == Combine::Sum) {
    if constexpr (integral) return wrapped(a, b, std::plus<>());
    return a + b;
  } else if constexpr (how == Combine::Product) {
    if constexpr (integral) return wrapped(a, b, std::multiplies<>());
    return a * b;
  } else if constexpr (how == Combine::Min) {
    return b < a || b != b ? b : a;  // NaN stays
  } else if constexpr (how == Combine::Max) {
    return b > a || b != b ? b : a;
  } else if constexpr (integral) {
    if constexpr (how == Combine::BitAnd) return a & b;
    if constexpr (how == Combine::BitOr) return a | b;
    return a ^ b;
  } else {
    TORCH_CHECK(false, "bits of floating-point numbers cannot be combined");
  }
}

template <typename T>
Wide<T> scaled(T value, double factor) {
  if (factor == 1) return static_cast<Wide<T>>(value);
  if constexpr (std::is_integral_v<T>)
    return static_cast<int64_t>(static_cast<double>(value) * factor);
  else
    return static_cast<Wide<T>>(value) * static_cast<Wide<T>>(factor);
}

template <typename T, Combine how>
void combine_as(const Formula& formula, const std::vector<const std::byte*>& inputs, Span result) {
  const size_t count = result.bytes / sizeof(T);
  auto* out = reinterpret_cast<T*>(result.data);
  std::array<Wide<T>, kBlock> block;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const T* in = reinterpret_cast<const T*>(inputs[k]) + begin;
      for (size_t i = 0; i < n; ++i) {
        const Wide<T> value = scaled(in[i], formula.factor);
        block[i] = k == 0 ? value : combined<how>(block[i], value);
      }
    }
    if (formula.divisor != 1)
      for (size_t i = 0; i < n; ++i) block[i] /= static_cast<Wide<T>>(formula.divisor);
    for (size_t i = 0; i < n; ++i) out[begin + i] = static_cast<T>(block[i]);
  }
}

template <typename T>
void combine_how(const Formula& formula, const std::vector<const std::byte*>& inputs, Span result) {
  switch (formula.how) {
    case Combine::Sum: return combine_as<T, Combine::Sum>(formula, inputs, result);
    case Combine::Product: return combine_as<T, Combine::Product>(formula, inputs, result);
    case Combine::Min: return combine_as<T, Combine::Min>(formula, inputs, result);
    case Combine::Max: return combine_as<T, Combine::Max>(formula, inputs, result);
    case Combine::BitAnd: return combine_as<T, Combine::BitAnd>(formula, inputs, result);
    case Combine::BitOr: return combine_as<T, Combine::BitOr>(formula, inputs, result);
    case Combine::BitXor: return combine_as<T, Combine::BitXor>(formula, inputs, result);
  }
}

}  // namespace

size_t size_of(Number type) {
  switch (type) {
    case Number::Int8:
    case Number::UInt8: return 1;
    case Number::Float16:
    case Number::BFloat16: return 2;
    case Number::Float32:
    case Number::Int32: return 4;
    case Number::Float64:
    case Number::Int64: return 8;
  }
  TORCH_INTERNAL_ASSERT(false);
}

void combine(Number type, const Formula& formula, const std::vector<const std::byte*>& inputs,
             Span result) {
  switch (type) {
    case Number::Float16: return combine_how<c10::Half>(formula, inputs, result);
    case Number::BFloat16: return combine_how<c10::BFloat16>(formula, inputs, result);
    case Number::Float32: return combine_how<float>(formula, inputs, result);
    case Number::Float64: return combine_how<double>(formula, inputs, result);
    case Number::Int8: return combine_how<int8_t>(formula, inputs, result);
    case Number::UInt8: return combine_how<uint8_t>(formula, inputs, result);
    case Number::Int32: return combine_how<int32_t>(formula, inputs, result);
    case Number::Int64: return combine_how<int64_t>(formula, inputs, result);
  }
}

}  // namespace torch_ocl::distributed
