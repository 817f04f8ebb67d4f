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

}  // namespace

std::string mismatch(const HostTensor& actual, const Expected& expected) {
  if (!(actual.sizes == expected.value.sizes))
    return fmt::format("shape {} instead of {}", ocltensor::to_string(actual.sizes),
                       ocltensor::to_string(expected.value.sizes));
  int64_t wrong = 0;
  std::string first;
  for (int64_t i = 0, n = actual.numel(); i < n; ++i) {
    if (is_floating(actual.dtype)) {
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
