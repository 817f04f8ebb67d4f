// The file of a device's measurements: one line each; the file is replaced as a whole.
#pragma once

#include <istream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl::measurement_file {

// A measurement as text: it may name algorithms that this version does not know. A time is infinite
// where the algorithm failed or was wrong.
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
// The lines as they are in the file, below its title. What is damaged is left out.
Lines parse(std::istream& text);
std::string to_text(const Lines& lines);
// Adds lines to the file or replaces them; other processes may do the same at the same time. Where
// the disk has no locks, or another writer takes seconds, a line can be lost: it is measured again.
void write(const std::string& path, const Lines& lines);
void remove(const std::string& path);

}  // namespace ocltensor::opencl::measurement_file
