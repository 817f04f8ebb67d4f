// Which defines each kernel file reads: a launch that lacks one, or sets another one, is refused
// when its program's text is made.
#pragma once

#include <span>
#include <string>

#include "runtime/program/source.h"

namespace ocltensor::opencl {

struct KernelReads {
  const char* path;     // of a Source
  const char* defines;  // read by it or its headers, each between spaces
  const char* needed;   // those that an #if reads, whatever else is defined
};
// Of all embedded kernels; the build writes it (generate_launches.py).
std::span<const KernelReads> kernel_reads();

// Whether launches are refused for what follows: in builds with OCLTENSOR_WERROR. In others a
// define too many costs a program, and one that is missing is 0.
bool checks_defines();

// Throw Error(TB_E_INTERNAL) naming the kernel and a define. What kernels of another folder read
// (OCLTENSOR_KERNEL_DIR) is not known, nor what sources outside of kernels/ do.
// One among `lines` (Defines::source()) that it does not read, and that no other one's text names.
void refuse_unread(const Source& source, const std::string& lines);
// One that it needs, of which there is none among `lines`: of the launch, and of the device.
void refuse_missing(const Source& source, const std::string& lines);

}  // namespace ocltensor::opencl
