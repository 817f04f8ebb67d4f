// A crash or a hang is attributed to what was being tested.
#pragma once

#include <string>

namespace ocltensor::conformance {

// What the kit is doing; printed by the signal handler, in front of "crashed".
void set_current(const std::string& what);
void install_crash_handler();

}  // namespace ocltensor::conformance
