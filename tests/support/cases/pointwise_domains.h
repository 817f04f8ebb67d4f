// Per pointwise operator: where its arguments come from, and how accurate it has to be.
#pragma once

#include <string_view>

#include "support/cases.h"

namespace ocltensor::testing {

struct PointwiseDomain {
  std::string_view name;  // of the schema, without the overload
  Domain first;           // operand 0
  Domain other;           // operands 1 ...
  Tolerance tolerance;
};

// The operator's row, or one of them at random. nullptr: values in [-4, 4] (integers in [-100,
// 100]), tolerance by result.
const PointwiseDomain* find_pointwise_domain(std::string_view name, Rng& rng);

}  // namespace ocltensor::testing
