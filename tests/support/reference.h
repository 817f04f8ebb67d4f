// Expected results: the CPU backend on float64 copies of the arguments, and the error each element
// may have.
#pragma once

#include <stdexcept>

#include "case.h"

namespace ocltensor::testing {

// The CPU backend cannot say what is right (it lacks the operator, or refuses the call).
struct NoReference : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Expected {
  HostTensor value;           // float64 where the output is floating, not yet rounded to its type
  std::vector<double> bound;  // largest accepted |actual - value|, per element; empty: exact
  Scale scale;
};

// What the CPU backend makes of a case as it is.
std::vector<HostTensor> run_reference(const Case& c);

// One entry per output, then one per argument that the operator updates. `rounds_summands`: what
// Case::summands says is accepted.
std::vector<Expected> expect(const Case& c, bool rounds_summands = false);

}  // namespace ocltensor::testing
