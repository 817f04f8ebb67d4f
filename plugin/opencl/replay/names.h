// Names of programs as files, and programs read from files of these names.
#pragma once

#include "replayer.h"

namespace ocltensor::replay {

// "003-elementwise-elementwise_cpu.cl": its place in the capture and its name.
std::string export_name(const capture_file::Capture& capture, const capture_file::Program& program);

// The programs that the folder has a file for. Throws Error(TB_E_INVALID) where it has none at all.
Replacements read_replacements(const capture_file::Capture& capture, const std::string& folder);

}  // namespace ocltensor::replay
