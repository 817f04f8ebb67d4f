// Whether results are right: those of one algorithm beside those of another for the same problem.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "algorithms.h"

namespace ocltensor::opencl {

// Compares results with a reference. Tolerances: the rounding of the result's type; and sums in
// another order, whose roundings add up like a random walk over `terms` steps, at the scale of the
// largest result. Poisoned gaps and NaN must be where the reference has them.
class ResultCheck {
 public:
  // `epsilon`: the rounding of products, if it is coarser than that of the type they have.
  ResultCheck(std::vector<ResultPart> parts, double epsilon, std::vector<std::byte> reference);
  // Whether wrong results would show: not if all of them are the same number.
  bool is_fit() const;
  // What is wrong, in words; empty: nothing.
  std::string objection(std::span<const std::byte> results) const;

 private:
  std::vector<ResultPart> parts_;
  double epsilon_;
  std::vector<std::byte> reference_;
};

}  // namespace ocltensor::opencl
