// Starts processes that compile programs; and what such a process needs itself.
#pragma once

#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl::build_ahead {

// How many processors this process may run on.
int usable_processors();

// Starts ocltensor-builder for device `index` with the settings in force; it ends if its device of
// that index has another identity than `caps`. It is detached (no signals, no waiting), prints
// nothing, and takes its work from the socket `input`, at whose end it ends. Throws
// Error(TB_E_UNAVAILABLE) if it is not installed beside this library, or cannot be run.
void start_builder(const Capabilities& caps, int index, int input);

// For the builder: detaches from the process that started it.
void detach();

}  // namespace ocltensor::opencl::build_ahead
