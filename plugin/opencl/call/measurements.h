// Results of measurements, by device, family and class of shapes: in memory, and in a file per
// device in the cache folder, by which later processes choose.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "configuration.h"
#include "shape_class.h"

namespace ocltensor::opencl {

class Device;
class AlgorithmFamily;

struct Timed {
  Choice choice;
  double microseconds;  // infinite: it failed, or its results were wrong
};
struct Measurement {
  std::string problem;  // device, family and class of shapes, for people
  std::vector<Timed> times;
  Choice best{};         // without an algorithm: nothing is known
  bool shipped = false;  // from a file that came with the library (shipped_measurements.h)
};

// All of these are thread-safe. `keep`: whether files may be read and written. A file that cannot
// be read, and lines that this version does not understand, are ignored.

// The best choice, as far as it is known; without an algorithm: not measured. Only with `shipped`
// does a file that came with the library count.
Choice find_measured(Device& device, const AlgorithmFamily& family, const ShapeClass& shape,
                     bool keep, bool shipped);
// All that was measured here of a class.
std::optional<Measurement> measurement_of(Device& device, const AlgorithmFamily& family,
                                          const ShapeClass& shape, bool keep);
enum class Existing : uint8_t { Stays, IsReplaced };
// Stores a measurement; one that another thread made meanwhile stays, or is replaced. Returns the
// best choice then known.
Choice add_measured(Device& device, const AlgorithmFamily& family, const ShapeClass& shape,
                    Measurement measurement, bool keep, Existing existing);
// Whether anything is known of a family on a device. The first call reads the files.
bool is_any_measured(Device& device, const AlgorithmFamily& family);

std::vector<Measurement> measurements();
// Also deletes those in the files of devices that are in use.
void forget_measurements();

// The device's own file, which may not exist yet; empty without a cache folder.
std::string measurement_path(Device& device);

}  // namespace ocltensor::opencl
