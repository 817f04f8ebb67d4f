// Lists in settings that only the plugin's own tables can check.
#pragma once

namespace ocltensor::opencl {

// Throws Error(TB_E_INVALID), with the variable's name, where a list of the environment names
// something that there is not. Later values are checked as they are set.
void check_lists();

}  // namespace ocltensor::opencl
