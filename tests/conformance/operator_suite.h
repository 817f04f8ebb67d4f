// Random cases for every operator that a backend declares, judged by the CPU backend.
#pragma once

#include <set>

#include "event.h"
#include "options.h"
#include "support/backend.h"

namespace ocltensor::conformance {

// Where a run goes on that a crash has ended.
struct Resume {
  size_t task = 0;
  double spent = 0;               // processor seconds before
  std::set<std::string> skipped;  // operators that crashed: their other cases are not run
};
void run_operators(const testing::Backend& backend, const Options& options, const Resume& resume,
                   const Sink& say);
// Names of the operators that the options select, with the number of cases.
void list_operators(const testing::Backend& backend, const Options& options);
// Mean and variance of the random operators' numbers; failures as text.
std::vector<std::string> check_moments(const testing::Backend& backend, const Options& options);

}  // namespace ocltensor::conformance
