// File names for programs, and programs read from files of these names.
#pragma once

#include "replayer.h"

namespace ocltensor::replay {

// "003-elementwise-elementwise_cpu.cl": the program's place in the capture and its name.
std::string export_name(const capture_file::Capture& capture, const capture_file::Program& program);

// The programs for which the folder has a file. Throws Error(TB_E_INVALID) if it has none at all.
Replacements read_replacements(const capture_file::Capture& capture, const std::string& folder);

}  // namespace ocltensor::replay
