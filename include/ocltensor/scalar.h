// Scalar: a number argument of an operator.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "ocltensor/dtype.h"
#include "ocltensor/error.h"

namespace ocltensor {

// A number that keeps its Python kind, for type promotion.
class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };
  // A bool, any integer up to the largest int64 (TB_E_INVALID beyond), or any floating-point
  // number.
  template <typename T>
  requires std::is_arithmetic_v<T> Scalar(T v)  // NOLINT: implicit on purpose, like the others
      : kind_(std::is_same_v<T, bool> ? Kind::Bool
              : std::is_integral_v<T> ? Kind::Int
                                      : Kind::Float) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t))
      check(v <= static_cast<T>(std::numeric_limits<int64_t>::max()),
            "{} is beyond the largest int64: a number argument cannot hold it", v);
    if constexpr (std::is_integral_v<T>)
      int_ = static_cast<int64_t>(v);
    else
      parts_[0] = static_cast<double>(v);
  }
  template <typename T>
  Scalar(std::complex<T> v)  // NOLINT
      : kind_(Kind::Complex),
        parts_{static_cast<double>(v.real()), static_cast<double>(v.imag())} {}
  Kind kind() const { return kind_; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  bool is_float() const { return kind_ >= Kind::Float; }  // not a whole number
  // For a complex number these give the real part, as ATen's casts do; as_bool tests both parts.
  double as_double() const { return is_float() ? parts_[0] : static_cast<double>(int_); }
  double imaginary() const { return parts_[1]; }
  std::complex<double> as_complex() const { return {as_double(), parts_[1]}; }
  int64_t as_int() const { return is_float() ? static_cast<int64_t>(parts_[0]) : int_; }
  bool as_bool() const { return is_float() ? parts_[0] != 0 || parts_[1] != 0 : int_ != 0; }
  DType dtype() const {  // of the wrapped number, for type promotion
    constexpr DType kTypes[] = {DType::Bool, DType::Int64, DType::Float32, DType::Complex64};
    return kTypes[static_cast<int>(kind_)];
  }
  // The value of a complex number points into this object, which must outlive it.
  OCLTENSOR_API tb_value to_value() const;

 private:
  Kind kind_;
  int64_t int_ = 0;
  double parts_[2] = {0, 0};
};

// Throws Error (TB_E_INVALID) where `value` lies outside of the numbers that `type` holds. As in
// ATen infinities and NaN fit into every floating type, and negative whole numbers wrap in uint8.
OCLTENSOR_API void check_fits(const Scalar& value, DType type);

namespace detail {
[[noreturn]] OCLTENSOR_API void refuse_number(const Scalar& value, bool is_float, bool is_signed,
                                              size_t bytes);
}  // namespace detail

// The number as T, for bool whether it is not zero. A fraction is cut off for an integer T and
// rounded for float. Throws Error (TB_E_INVALID) that names value and type where T does not hold
// it: beyond T's range, NaN and infinities for an integer T, complex.
template <typename T>
requires std::is_arithmetic_v<T> T number_as(const Scalar& value) {
  using Limits = std::numeric_limits<T>;
  const double real = value.as_double();
  bool fits = !value.is_complex();
  if constexpr (std::is_same_v<T, bool>) {
    if (fits) return value.as_bool();
  } else if constexpr (std::is_floating_point_v<T>) {
    fits = fits && (!(std::abs(real) > static_cast<double>(Limits::max())) || std::isinf(real));
    if (fits) return static_cast<T>(real);
  } else if (!value.is_float()) {
    if (std::in_range<T>(value.as_int())) return static_cast<T>(value.as_int());
  } else {  // both bounds are powers of two or zero, exact as double
    fits = fits && std::trunc(real) >= static_cast<double>(Limits::min()) &&
           std::trunc(real) < std::ldexp(1.0, Limits::digits);
    if (fits) return static_cast<T>(real);
  }
  detail::refuse_number(value, std::is_floating_point_v<T>, std::is_signed_v<T>, sizeof(T));
}

}  // namespace ocltensor
