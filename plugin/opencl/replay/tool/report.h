// Verdicts and times, as text and as JSON.
#pragma once

#include "describe.h"
#include "replay/comparison.h"

namespace tools {

void print_verdict(const ocltensor::replay::Verdict& verdict, double tolerance);
json to_json(const ocltensor::replay::Verdict& verdict);

// Launches with their median time over repetitions, longest first.
struct LaunchTime {
  size_t launch;
  double microseconds;
};
std::vector<LaunchTime> medians(const std::vector<std::vector<uint64_t>>& repetitions);
void print_times(const Capture& capture, const std::vector<LaunchTime>& times, size_t rows);
json to_json(const Capture& capture, const std::vector<LaunchTime>& times);

}  // namespace tools
