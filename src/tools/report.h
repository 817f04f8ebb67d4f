// The file of ocltensor-info --report: what a device is, how right and how fast it is, for those
// who maintain kernels for devices that they do not own.
#pragma once

#include <ocltensor/ocltensor.h>

#include <string>

#include "self_test.h"

namespace tools {

// Writes JSON to `file` (format 1): "device", "drivers", "settings" that are not defaults,
// "providers", "self_test", "speed" and "kit" (a slice of the conformance kit). Neither paths nor
// names of the machine or its user are in it. `plugin`: the file of the device's backend. Tells its
// progress on standard output; takes minutes, of which the kit has `kit_seconds` of processor time.
// Throws std::runtime_error if the file cannot be written.
void write_report(const std::string& file, const std::string& plugin, ocltensor::Device device,
                  const SelfTest& self_test, int kit_seconds);

}  // namespace tools
