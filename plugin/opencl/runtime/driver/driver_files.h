// The files that name OpenCL's drivers (*.icd): why none of them gave a platform.
#pragma once

#include <string>

namespace ocltensor::opencl {

// A line for each file: the library that it names and why it does not load. Empty without files.
// Loads libraries: for a process that has no platform.
std::string describe_driver_files();

}  // namespace ocltensor::opencl
