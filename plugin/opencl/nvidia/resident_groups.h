// How many work-groups of a kernel a multiprocessor shall run at a time, which OpenCL C cannot say:
// the declaration is added to the compiler's PTX. Without it `ptxas` takes as many registers as a
// work-group alone may have, and one register too many lets half as many groups run.
#pragma once

#include <string>

#include "runtime/program/program.h"

namespace ocltensor::opencl::nvidia {

// Whether OpenCL C asks for two work-groups of 256 items at a time, 128 registers an item: it has
// the line `#define TWO_GROUPS_OF_256`.
bool wants_resident_groups(const Capabilities& caps, const std::string& source);
// PTX whose kernels of 256 items are declared so; other text as it is.
std::string declare_resident_groups(const std::string& binary);

inline constexpr ProgramFinisher kResidentGroups{wants_resident_groups, declare_resident_groups};

}  // namespace ocltensor::opencl::nvidia
