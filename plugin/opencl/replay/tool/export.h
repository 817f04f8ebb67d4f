// A bug report from a capture: a folder that a driver's maintainers can read without this project's
// code.
#pragma once

#include "describe.h"

namespace tools {

// Throws ocltensor::Error if the folder cannot be made or written.
void export_report(const Capture& capture, const std::string& capture_path,
                   const std::string& folder);

}  // namespace tools
