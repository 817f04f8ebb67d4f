// The file of a device's measurements: a line each, replaced as a whole.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl::measurement_file {

// As text: no algorithm need be known that a line names.
struct Line {
  std::string best;
  std::vector<std::pair<std::string, double>> microseconds;
  std::string problem;
};
// By family and class ("1 64 64 ...").
using Lines = std::map<std::pair<std::string, std::string>, Line>;

// For a device as its driver describes it and the kernels of this version; empty without a cache
// folder.
std::string path_of(const Capabilities& caps);
Lines read(const std::string& path);
// Adds to what is there, or replaces it; other processes may do the same at the same time.
void write(const std::string& path, const Lines& lines);
void remove(const std::string& path);

}  // namespace ocltensor::opencl::measurement_file
