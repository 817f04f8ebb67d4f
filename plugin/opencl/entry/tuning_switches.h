// Tuning through the switches of the C boundary: one action, and reports. plugin.h has their
// fields.
#pragma once

#include <string>
#include <string_view>

namespace ocltensor::opencl {

// "DEVICE NUMBER quick|full": tunes a problem of report_tuning_problems().
void tune_numbered_problem(std::string_view value);

// The argument is a device's index.
std::string report_tuning_problems(std::string_view device);
std::string report_measurements_file(std::string_view device);
std::string report_measurements_export(std::string_view device);
// These have none.
std::string report_tuning_progress(std::string_view);
std::string report_tuned_classes(std::string_view);

}  // namespace ocltensor::opencl
