// Measurements that come with the library, or in files that OCLTENSOR_TUNED_FILES names: what was
// measured and exported elsewhere on a device of the same name. One's own measurements come first.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "measurement_file.h"

namespace ocltensor::opencl::shipped_measurements {

// A file of plugin/opencl/tuned, embedded by embed_tuned.py.
struct Embedded {
  const char* path;
  const char* text;
};
std::span<const Embedded> embedded();

// Such a file: a title, what the device was (a name and a value per line), an empty line, and the
// lines of a file of measurements.
std::string export_text(const Capabilities& caps, const measurement_file::Lines& lines);

// Why a file's text is not for a device; empty: it is.
std::string refusal(std::string_view text, const Capabilities& caps);
// All lines for a device; where several files have one, that of the setting's first file counts.
// A file of the setting that cannot be used is a warning in the log with the reason.
measurement_file::Lines lines_for(const Capabilities& caps);

}  // namespace ocltensor::opencl::shipped_measurements
