// Results of measurements, by device, family and class of shapes: in memory, and in a file per
// device in the cache folder, by which later processes choose.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shape_class.h"

namespace ocltensor::opencl {

class Device;
class AlgorithmFamily;
class Algorithm;

struct Measurement {
  std::string problem;  // device, family and class of shapes, for people
  std::vector<std::pair<const Algorithm*, double>> microseconds;
  const Algorithm* best = nullptr;
};

// All of these are thread-safe. `keep`: whether the file may be read and written. A file that
// cannot be read, and lines that this version does not understand, are ignored.

// The best algorithm, as far as it is known; nullptr: not measured.
const Algorithm* find_measured(Device& device, const AlgorithmFamily& family,
                               const ShapeClass& shape, bool keep);
// Stores a measurement unless another thread was first; returns the best algorithm then known.
const Algorithm* add_measured(Device& device, const AlgorithmFamily& family,
                              const ShapeClass& shape, Measurement measurement, bool keep);
// Whether anything is known of a family on a device. The first call reads the file.
bool is_any_measured(Device& device, const AlgorithmFamily& family);

std::vector<Measurement> measurements();
// Also deletes those in the files of devices that are in use.
void forget_measurements();

}  // namespace ocltensor::opencl
