// Running everything, each group in a process of its own: a crash or a hang is a row of the report.
#pragma once

#include "options.h"

namespace ocltensor::conformance {

// Returns the exit status: 0 where everything passed, 1 after a failure, 2 where nothing could be
// tested.
int run_groups(const Options& options);

// Prints the operators that the options select; the plugin runs in this process.
void print_list(const Options& options);

}  // namespace ocltensor::conformance
