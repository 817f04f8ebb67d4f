// The file of a device's measurements: one line each; the file is replaced as a whole.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl::measurement_file {

// A measurement as text: it may name algorithms that this version does not know.
struct Line {
  std::string best;
  std::vector<std::pair<std::string, double>> microseconds;
  std::string problem;
};
// By family and class of shapes ("1 64 64 ...").
using Lines = std::map<std::pair<std::string, std::string>, Line>;

// The file for a device, as its driver describes it, and the kernels of this version; empty without
// a usable cache folder.
std::string path_of(const Capabilities& caps);
Lines read(const std::string& path);
// Adds lines to the file or replaces them; other processes may do the same at the same time. Where
// the disk has no locks, or another writer takes seconds, a line can be lost: it is measured again.
void write(const std::string& path, const Lines& lines);
void remove(const std::string& path);

}  // namespace ocltensor::opencl::measurement_file
