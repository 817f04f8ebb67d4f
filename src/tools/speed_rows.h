// How fast a device is at a few operators of each family, in about a minute; for reports.
#pragma once

#include <ocltensor/ocltensor.h>

#include <functional>
#include <string>
#include <vector>

namespace tools {

struct SpeedRow {
  std::string name;         // "mm 1024x1024x1024 float32"
  std::string unit;         // of `rate`: "GB/s" of bytes read and written, or "GFLOP/s"
  double microseconds = 0;  // of a call in a queue that is kept full: the best of five samples
  double rate = 0;
  double first_ms = 0;    // of the first call, programs included
  std::string algorithm;  // the last that ran; empty: the operator has no choice
  std::string error;      // instead of a time
};

// Calls `tell` with each row when it has been measured. An operator that fails is a row with its
// error. Numbers are random, as some devices are faster on zeros.
std::vector<SpeedRow> measure_speed(ocltensor::Device device,
                                    const std::function<void(const SpeedRow&)>& tell);

}  // namespace tools
