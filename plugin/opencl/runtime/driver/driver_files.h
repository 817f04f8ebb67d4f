// The files that name OpenCL's drivers (*.icd), and why none of them provided a platform.
#pragma once

#include <string>

namespace ocltensor::opencl {

// One line for each file: the library that it names, and why that does not load. Empty without
// files. Loads the libraries, so it is only for processes without a platform.
std::string describe_driver_files();

}  // namespace ocltensor::opencl
