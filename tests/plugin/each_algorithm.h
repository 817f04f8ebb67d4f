// For tests of a family's algorithms: each of those that the device has, on random problems.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "call/algorithms.h"
#include "plugin/any_call.h"

namespace ocltensor::opencl {

// Whether all is tested that takes minutes.
inline const bool kThorough = std::getenv("TEST_THOROUGHLY") != nullptr;

// Calls run(algorithm) until it has taken some problems, or none of many; `run` draws a problem and
// returns whether the algorithm took it.
template <typename Problem, typename Run>
void run_each_algorithm(const AlgorithmFamily& family, Run&& run) {
  const int count = kThorough ? 60 : 6;
  const AnyCall any;
  for (const Algorithm* a : family.algorithms()) {
    if (excluded(*any, *a) != nullptr) continue;
    int taken = 0;
    for (int tries = 0; taken < count && tries < 100 * count; ++tries)
      if (run(static_cast<const AlgorithmFor<Problem>&>(*a))) ++taken;
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace ocltensor::opencl
