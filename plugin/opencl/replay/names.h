// File names for programs, and programs read from files of these names.
#pragma once

#include "replayer.h"

namespace ocltensor::replay {

// "003-elementwise-elementwise_cpu.cl": the program's place in the capture and its name.
std::string export_name(const capture_file::Capture& capture, const capture_file::Program& program);

// The programs for which the folder has a file, with the options in the file NAME.options, or the
// captured ones where that is missing. Throws Error(TB_E_INVALID) if no program has a file.
Replacements read_replacements(const capture_file::Capture& capture, const std::string& folder);

}  // namespace ocltensor::replay
