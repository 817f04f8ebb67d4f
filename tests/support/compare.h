// Judging an output against its expectation.
#pragma once

#include "reference.h"

namespace ocltensor::testing {

// Empty when every element is acceptable, else the first that is not, in words. NaN must match NaN,
// infinities must match; a finite result beyond the type's range may round to infinity.
std::string mismatch(const HostTensor& actual, const Expected& expected);

}  // namespace ocltensor::testing
