// Instructions that NVIDIA's OpenCL compiler does not know (Hopper's wgmma, setmaxnreg): kernels
// hide them in comments of inline assembly, and they are uncovered in the PTX that the compiler
// generates.
#pragma once

#include <string>

namespace ocltensor::opencl::nvidia_hopper::ptx {

// Whether OpenCL C hides instructions: asm text that begins with `//@ `.
bool hides_instructions(const std::string& source);

// Turns the compiler's PTX for sm_90 into PTX for sm_90a with the instructions uncovered. Their
// operands were already substituted by the compiler, which does so in comments, too. Every kernel
// is declared to run one work-group at a time per multiprocessor, so that it may use all the
// registers. Throws Error(TB_E_COMPILE) if the text is not PTX for sm_90.
std::string uncover(const std::string& text);

}  // namespace ocltensor::opencl::nvidia_hopper::ptx
