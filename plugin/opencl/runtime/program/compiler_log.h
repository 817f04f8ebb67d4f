// What a compiler's log says about a text that a user wrote.
#pragma once

#include <string>

namespace ocltensor::opencl {

// "line 3:   int i = undeclared;": the line of the user's that a log names first, as
// "FILE:3:5: error" or "error: FILE:3:5"; empty if it names none, or a header. `source` is what the
// compiler was given: of a compiler that obeys no #line (NVIDIA's) the log counts its lines.
std::string line_in_question(const std::string& log, const std::string& source);

}  // namespace ocltensor::opencl
