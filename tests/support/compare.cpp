// Element comparison.
#include "compare.h"

#include <fmt/format.h>

#include <cmath>

namespace ocltensor::testing {
namespace {

bool acceptable(DType type, double actual, double expected, double bound, Scale scale) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) == std::isnan(actual);
  if (scale == Scale::Bits || bound == 0) {
    const double rounded = round_to(type, expected);
    return actual == rounded &&
           (scale != Scale::Bits || std::signbit(actual) == std::signbit(rounded));
  }
  if (std::isinf(expected)) return actual == expected;
  if (std::isinf(actual)) return round_to(type, expected + std::copysign(bound, actual)) == actual;
  return std::abs(actual - expected) <= bound;
}

// The distance in the plane is judged, not each part: in a product or quotient a part that cancels
// has the error of the other one, whatever the arithmetic. Moved numbers are equal part by part.
bool acceptable_complex(DType type, std::complex<double> a, std::complex<double> e, double bound,
                        Scale scale) {
  if (scale == Scale::Bits || scale == Scale::Exact)
    return acceptable(real_type(type), a.real(), e.real(), 0, scale) &&
           acceptable(real_type(type), a.imag(), e.imag(), 0, scale);
  const auto is_nan = [](std::complex<double> v) {
    return std::isnan(v.real()) || std::isnan(v.imag());
  };
  if (is_nan(a) || is_nan(e)) return is_nan(a) && is_nan(e);
  const auto agrees = [](double x, double y) { return std::isinf(y) ? x == y : std::isfinite(x); };
  if (std::isinf(e.real()) || std::isinf(e.imag()))
    return agrees(a.real(), e.real()) && agrees(a.imag(), e.imag());
  return std::abs(a - e) <= bound;
}

}  // namespace

std::string mismatch(const HostTensor& actual, const Expected& expected) {
  if (!(actual.sizes == expected.value.sizes))
    return fmt::format("shape {} instead of {}", ocltensor::to_string(actual.sizes),
                       ocltensor::to_string(expected.value.sizes));
  int64_t wrong = 0;
  std::string first;
  for (int64_t i = 0, n = actual.numel(); i < n; ++i) {
    if (is_complex(actual.dtype)) {
      const double bound = expected.bound.empty() ? 0 : expected.bound[static_cast<size_t>(i)];
      const std::complex<double> a = actual.complex(i), e = expected.value.complex(i);
      if (acceptable_complex(actual.dtype, a, e, bound, expected.scale)) continue;
      if (wrong++ == 0)
        first = fmt::format("element {} is {:.9g}{:+.9g}j, expected {:.9g}{:+.9g}j +- {:.3g}", i,
                            a.real(), a.imag(), e.real(), e.imag(), bound);
    } else if (is_floating(actual.dtype)) {
      const double bound = expected.bound.empty() ? 0 : expected.bound[static_cast<size_t>(i)];
      const double a = actual.real(i), e = expected.value.real(i);
      if (acceptable(actual.dtype, a, e, bound, expected.scale)) continue;
      if (wrong++ == 0)
        first = fmt::format("element {} is {:.9g}, expected {:.9g} +- {:.3g}", i, a, e, bound);
    } else {
      // Bytes of bool other than 0 and 1 are wrong too: integer() shows them.
      HostTensor one(actual.dtype, {});
      is_floating(expected.value.dtype) ? one.set(0, expected.value.real(i))
                                        : one.set_integer(0, expected.value.integer(i));
      if (actual.integer(i) == one.integer(0)) continue;
      if (wrong++ == 0)
        first = fmt::format("element {} is {}, expected {}", i, actual.integer(i), one.integer(0));
    }
  }
  if (wrong == 0) return {};
  return fmt::format("{} ({} of {} elements differ)", first, wrong, actual.numel());
}

}  // namespace ocltensor::testing
