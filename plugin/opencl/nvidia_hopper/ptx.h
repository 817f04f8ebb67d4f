// Instructions that NVIDIA's OpenCL compiler does not know (Hopper's wgmma, setmaxnreg): kernels
// hide them in comments of the assembler, and they are uncovered in the program that the compiler
// makes.
#pragma once

#include <string>

namespace ocltensor::opencl::nvidia_hopper::ptx {

// Does OpenCL C hide instructions: asm text that begins with `//@ `?
bool hides_instructions(const std::string& source);

// The compiler's PTX for sm_90 as PTX for sm_90a with the instructions uncovered: operands were
// filled in by the compiler, which takes a comment for code. Every kernel is told to expect one
// work-group at a time on a core, so that it may have all the registers. Throws Error(TB_E_COMPILE)
// where the text is no PTX for sm_90.
std::string uncover(const std::string& text);

}  // namespace ocltensor::opencl::nvidia_hopper::ptx
