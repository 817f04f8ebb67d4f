// Process-wide state: fork detection. An OpenCL driver does not survive fork(); the child gets an
// error, not a hang.
#pragma once

namespace ocltensor::opencl {

// To be called when a driver has been loaded: from then on a forked child is refused.
void note_driver_loaded();
// Throws Error(TB_E_STATE) in a child forked after that.
void check_process();
bool is_forked();  // whether this is such a child

}  // namespace ocltensor::opencl
