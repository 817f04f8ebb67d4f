// The problems by which a device is tuned (problems.def), and how one of them is tuned.
#pragma once

#include <span>
#include <string>

#include "call/policy.h"
#include "ocltensor/dtype.h"
#include "runtime/device/device.h"

namespace ocltensor::opencl::tuning {

class Work;

struct Problem {
  std::string family;  // whose choices are measured
  DType dtype;
  bool quick;
  double operations;  // multiplications and additions
  std::string text;
  // Tuned by `policy`; what is needed beforehand is computed by the policy in force.
  void (*run)(Work& work, const Problem& problem, const Policy& policy);
  int64_t sizes[8];
};

// In the order of the table, the types of one row one after the other.
std::span<const Problem> problems();
// Why a problem is not worth tuning on a device, or cannot be; nullptr: it can.
const char* refusal(const Problem& problem, const Device& device);
// Tunes the problem's class of shapes; see call/tuning.h for what has been found, and for stopping.
void tune_problem(Device& device, const Problem& problem, bool quick);

}  // namespace ocltensor::opencl::tuning
