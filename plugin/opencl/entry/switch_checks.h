// Checks lists in settings against the plugin's own tables.
#pragma once

namespace ocltensor::opencl {

// Throws Error(TB_E_INVALID), with the variable's name, if a list of the environment names
// something that does not exist. Values set later are checked when they are set.
void check_lists();

}  // namespace ocltensor::opencl
