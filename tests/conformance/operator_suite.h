// Random cases for every operator that a backend declares, judged by the CPU backend.
#pragma once

#include "options.h"
#include "support/backend.h"
#include "table.h"

namespace ocltensor::conformance {

void run_operators(const testing::Backend& backend, const Options& options, Table& table);
// Names of the operators that the options select, with the number of cases.
void list_operators(const testing::Backend& backend, const Options& options);
// Mean and variance of the random operators' numbers; failures as text.
std::vector<std::string> check_moments(const testing::Backend& backend, const Options& options);

}  // namespace ocltensor::conformance
