// A trace in the JSON format of Chrome's tracing, which Perfetto reads (Trace Event Format, Google,
// 2016).
#pragma once

#include <string>

#include "runtime/observe/trace.h"

namespace ocltensor::opencl::profiler {

// TB_E_INVALID with the system's reason if the file cannot be written.
void check_writable(const std::string& path);
// TB_E_INTERNAL with the system's reason if it cannot be written to its end.
void write(const Trace& trace);

}  // namespace ocltensor::opencl::profiler
