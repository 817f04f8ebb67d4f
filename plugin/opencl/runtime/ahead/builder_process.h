// Starts processes that compile programs; and what such a process needs itself.
#pragma once

#include <string_view>

#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl::build_ahead {

// How many processors this process may run on.
int usable_processors();

// Starts ocltensor-builder for device `index` with the settings in force; it ends if its device of
// that index has another identity than `caps`. It is detached (no signals, no waiting), prints
// nothing, and ends after its work or soon after this process, of which `input` tells it: a file
// descriptor, -1 for a pipe that stays open as long as this process lives. Throws
// Error(TB_E_UNAVAILABLE) if it is not installed beside this library, or cannot be run.
void start_builder(std::string_view work, const Capabilities& caps, int index, int input = -1);

// For the builder: detaches from the process that started it.
void detach();
// For the builder: whether that process still lives.
bool is_wanted();

}  // namespace ocltensor::opencl::build_ahead
