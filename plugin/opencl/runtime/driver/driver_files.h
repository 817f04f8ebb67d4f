// The files and variables that name OpenCL's drivers (*.icd, OCL_ICD_FILENAMES), and why none of
// them provided a platform.
#pragma once

#include <array>
#include <string>

namespace ocltensor::opencl {

// Keeps the variables that list drivers and layers while the loader reads them: Khronos' loader
// (2023.04.17) ends the text of the environment itself at the first ':', so that child processes
// would find one driver of several.
class DriverVariables {
 public:
  DriverVariables();
  ~DriverVariables();
  DriverVariables(const DriverVariables&) = delete;

 private:
  struct Kept {
    char* text;  // in the environment; null: not set
    std::string value;
  };
  std::array<Kept, 2> kept_;
};

// One line for each file: the library that it names, and why that does not load. Empty without
// files. Loads the libraries, so it is only for processes without a platform.
std::string describe_driver_files();

}  // namespace ocltensor::opencl
